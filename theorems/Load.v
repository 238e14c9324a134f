(** LOAD: costs in units, rounded down; the smallest entry of each block; entries too large. *)

Require Import ZArith List Lia Bool.
Require Import Statement Costs Reduce Presolve.
Import ListNotations.
Local Open Scope Z_scope.

Definition lift (w : Z -> Z) (c : cost) : cost := match c with Fin z => Fin (w z) | Inf => Inf end.

(** Entries minus the smallest one; those that exceed it by more than [most] are forbidden. *)
Definition near (most low : Z) (c : cost) : cost :=
  match c with
  | Fin z => if z - low <=? most then Fin (z - low) else Inf
  | Inf => Inf
  end.

(** A block of costs: the smallest entry, and the table of the differences. *)
Definition convert (w : Z -> Z) (most : Z) (t : table) : Z * table :=
  let u := mapt (lift w) t in
  match least u with
  | Fin low => (low, mapt (near most low) u)
  | Inf => (0, u)
  end.

Definition gcd (d c : Z) : Z := if d =? 1 then 1 else Z.gcd d c.

Lemma gcd_eq d c : gcd d c = Z.gcd d c.
Proof. unfold gcd. destruct (Z.eqb_spec d 1) as [->|]; auto. symmetry. apply Z.gcd_1_l. Qed.

(** The greatest common divisor of [d] and all finite entries. *)
Fixpoint divisor (d : Z) (t : table) : Z :=
  match t with
  | Val (Fin c) => gcd d c
  | Val Inf => d
  | Row rows => fold_left (fun e r => divisor e r) rows d
  end.

Lemma fold_divisor rows : Forall (fun t => forall d, (divisor d t | d)) rows ->
  forall d, (fold_left (fun e r => divisor e r) rows d | d).
Proof.
  induction 1 as [|t rows H _ IH]; intros d; simpl; [apply Z.divide_refl|].
  eapply Z.divide_trans; [apply IH|apply H].
Qed.

Fixpoint depth (t : table) : nat :=
  match t with Val _ => O | Row rows => S (fold_right Nat.max O (map depth rows)) end.

Lemma divisor_divides n : forall t d, (depth t <= n)%nat -> (divisor d t | d).
Proof.
  induction n as [|n IH]; intros [[c|]|rows] d D; cbn [divisor]; rewrite ?gcd_eq;
    try apply Z.gcd_divide_l; try apply Z.divide_refl.
  - simpl in D. lia.
  - apply fold_divisor. apply Forall_forall. intros t T e. apply IH.
    simpl in D. apply le_S_n in D. eapply Nat.le_trans; [|apply D]. clear - T.
    induction rows as [|r rows IHr]; [easy|]. simpl. destruct T as [->|T]; [lia|]. specialize (IHr T). lia.
Qed.

Lemma divisor_entry idx : forall t d c, entry t idx = Fin c -> (divisor d t | c).
Proof.
  induction idx as [|a idx IH]; intros [e|rows] d c H; simpl in H; try easy.
  - subst e. simpl. rewrite gcd_eq. apply Z.gcd_divide_r.
  - destruct (nth_error rows a) as [r|] eqn:E; [|easy]. cbn [divisor].
    revert a d E. induction rows as [|q rows IHr]; intros [|a] d E; simpl in E; try easy.
    + injection E as ->. simpl. eapply Z.divide_trans; [|apply (IH _ d _ H)].
      apply fold_divisor. apply Forall_forall. intros t _ f. now apply (divisor_divides (depth t)).
    + simpl. eauto.
Qed.

Section Blocks.
Variable w : Z -> Z.
Variable most : Z.
Hypothesis most_nonneg : 0 <= most.

Definition units (f : factor) (x : labelling) : cost := lift w (value f x).
Definition conv (f : factor) (x : labelling) : cost := value (fst f, snd (convert w most (snd f))) x.
Definition low (f : factor) : Z := fst (convert w most (snd f)).

Lemma convert_spec f x :
  match conv f x with
  | Fin c => units f x = Fin (low f + c)
  | Inf => le (Fin (low f + most + 1)) (units f x)
  end /\ le (Fin (low f)) (units f x).
Proof.
  unfold conv, low, units, convert, value. cbn [fst snd].
  assert (E := entry_mapt (lift w) (snd f) (map x (fst f)) eq_refl).
  assert (L := least_le (mapt (lift w) (snd f)) (map x (fst f))).
  destruct (least (mapt (lift w) (snd f))) as [m|] eqn:M; cbn [fst snd].
  - rewrite entry_mapt by auto. rewrite E. rewrite E in L.
    destruct (lift w (entry (snd f) (map x (fst f)))) as [z|]; simpl; auto.
    simpl in L. destruct (Z.leb_spec (z - m) most); simpl; [|lia]. split; [f_equal; lia|lia].
  - rewrite E in *. destruct (lift w (entry (snd f) (map x (fst f)))); simpl in *; easy.
Qed.

Definition lows (bs : list factor) : Z := fold_right Z.add 0 (map low bs).

Definition common_of (bs : list factor) (d : Z) : Z :=
  fold_left (fun d f => let '(l, t) := convert w most (snd f) in divisor (Z.gcd d l) t) bs d.

Lemma common_step d l t : (divisor (Z.gcd d l) t | d) /\ (divisor (Z.gcd d l) t | l).
Proof.
  assert (H := divisor_divides (depth t) t (Z.gcd d l) (le_n _)).
  split; (eapply Z.divide_trans; [apply H|]); [apply Z.gcd_divide_l|apply Z.gcd_divide_r].
Qed.

Lemma common_divides bs : forall d, (common_of bs d | d).
Proof.
  induction bs as [|f bs IH]; intros d; simpl; [apply Z.divide_refl|].
  destruct (convert w most (snd f)) as [l t]. eapply Z.divide_trans; [apply IH|]. apply common_step.
Qed.

(** All blocks: either every entry is near, or the sum reaches the cut. *)
Lemma blocks_spec bs x : forall d,
  match sum (map (fun f => conv f x) bs) with
  | Fin c => sum (map (fun f => units f x) bs) = Fin (lows bs + c)
             /\ (common_of bs d | lows bs + c)
  | Inf => le (Fin (lows bs + most + 1)) (sum (map (fun f => units f x) bs))
  end /\ le (Fin (lows bs)) (sum (map (fun f => units f x) bs)).
Proof.
  induction bs as [|f bs IH]; intros d.
  - change (lows []) with 0. simpl. split; [split; [auto|]|lia]. apply Z.divide_0_r.
  - cbn [map]. rewrite !sum_cons. unfold lows, common_of. cbn [map fold_right fold_left]. fold (lows bs).
    destruct (convert w most (snd f)) as [l t] eqn:CV. fold (common_of bs (divisor (Z.gcd d l) t)).
    destruct (IH (divisor (Z.gcd d l) t)) as [H1 H2]. clear IH. destruct (convert_spec f x) as [G1 G2].
    assert (LF : low f = l) by (unfold low; now rewrite CV). rewrite LF in *.
    destruct (conv f x) as [a|] eqn:A.
    + assert (DA : (common_of bs (divisor (Z.gcd d l) t) | l + a)).
      { eapply Z.divide_trans; [apply common_divides|]. apply Z.divide_add_r; [apply common_step|].
        unfold conv, value in A. rewrite CV in A. cbn [fst snd] in A. eapply divisor_entry, A. }
      destruct (sum (map (fun f => conv f x) bs)) as [b|].
      * destruct H1 as [H1 D1]. rewrite G1 in G2. rewrite H1 in H2. rewrite G1, H1. simpl in *. split; [split|lia].
        -- f_equal. lia.
        -- replace (l + lows bs + (a + b)) with ((l + a) + (lows bs + b)) by lia.
           now apply Z.divide_add_r.
      * rewrite G1 in *. destruct (sum (map (fun f => units f x) bs)); simpl in *; auto. lia.
    + destruct (units f x), (sum (map (fun f => units f x) bs)),
        (sum (map (fun f => conv f x) bs)); simpl in *; auto; lia.
Qed.

(** Unary costs first, under the key of their variable; then factors, with sorted scopes. *)
Definition load_own (R : red) (f : factor) : option red :=
  match fst f with
  | [v] =>
      match get (xO v) (cells R) with
      | Some _ => None
      | None =>
          let '(l, t) := convert w most (snd f) in
          Some (raise l (put (set (xO v) (Some ([v], t)) (cells R)) R))
      end
  | _ => None
  end.

Definition load_factor (R : red) (f : factor) : option red :=
  let '(l, t) := convert w most (snd f) in
  let s := fold_right insert [] (fst f) in
  ensure (Nat.eqb (length s) (length (fst f)));
  do c <- (if list_eq_dec Pos.eq_dec s (fst f) then Some (s, t)
           else over (cells R) s (fun e => value (fst f, t) e));
  do R' <- add c (raise l R); Some R'.

Fixpoint load_all (g : red -> factor -> option red) (R : red) (bs : list factor) : option red :=
  match bs with
  | [] => Some R
  | f :: rest => do R' <- g R f; load_all g R' rest
  end.

Definition adds_block (g : red -> factor -> option red) : Prop := forall R f R' x,
  g R f = Some R' -> le (val R' x) (plus (Fin (low f)) (plus (conv f x) (val R x))).

Lemma load_own_adds : adds_block load_own.
Proof.
  intros R f R' x. unfold load_own. destruct f as [[|v [|]] tab]; try easy. cbn [fst snd].
  destruct (get (xO v) (cells R)) eqn:G; [easy|].
  destruct (convert w most tab) as [l t] eqn:CV. got.
  unfold low, conv. cbn [fst snd]. rewrite CV. cbn [fst snd]. unfold val. fields.
  destruct (closed R); [rewrite !plus_inf; auto|]. unfold tot. rewrite total_set.
  assert (N := total_get (fun c => value c x) (xO v) (cells R)). rewrite G in N. unfold one in N.
  rewrite plus_0 in N. rewrite <- N. unfold one.
  split_cost (value ([v], t) x); split_cost (total (fun c => value c x) (cells R)); simpl; auto; lia.
Qed.

Lemma load_factor_adds : adds_block load_factor.
Proof.
  intros R f R' x. unfold load_factor. destruct (convert w most (snd f)) as [l t] eqn:CV.
  set (s := fold_right insert [] (fst f)). destruct (Nat.eqb _ _); [|easy].
  match goal with |- (do _ <- ?a; _) = _ -> _ => destruct a as [c|] eqn:O; [|easy] end.
  destruct (add c (raise l R)) as [Q|] eqn:A; [|easy]. got.
  unfold low, conv. rewrite CV. cbn [fst snd]. apply add_val in A as [_ A]. rewrite A.
  destruct (list_eq_dec Pos.eq_dec s (fst f)) as [SF|_].
  { apply some_inj in O. subst c. rewrite SF. unfold val. fields.
    destruct (closed R); [rewrite !plus_inf; auto|].
    split_cost (value (fst f, t) x); split_cost (tot x (cells R)); simpl; auto; lia. }
  apply (over_value _ _ _ _ x) in O as [O|O].
  - replace (val R x) with Inf; [rewrite !plus_inf; auto|]. unfold val. rewrite O. now destruct (closed R).
  - rewrite O. rewrite (value_agree (fst f, t) (env s (map x s)) x).
    + unfold val. fields. destruct (closed R); [rewrite !plus_inf; auto|].
      split_cost (value (fst f, t) x); split_cost (tot x (cells R)); simpl; auto; lia.
    + intros v V. apply env_map. cbn [fst] in V. clear - V. unfold s.
      induction (fst f) as [|u l IH]; [easy|]. simpl. apply insert_in. destruct V as [->|V]; auto.
Qed.

Lemma load_all_val g bs : adds_block g -> forall R R' x, load_all g R bs = Some R' ->
  le (val R' x) (plus (Fin (lows bs)) (plus (sum (map (fun f => conv f x) bs)) (val R x))).
Proof.
  intros G. induction bs as [|f bs IH]; simpl; intros R R' x H.
  - injection H as <-. change (sum []) with (Fin 0). split_cost (val R x); simpl; auto; lia.
  - destruct (g R f) as [Q|] eqn:E; [|easy]. eapply le_trans; [eapply IH, H|].
    apply (G _ _ _ x) in E. change (lows (f :: bs)) with (low f + lows bs).
    fold (sum (map (fun f => conv f x) bs)).
    revert E. split_cost (val Q x); split_cost (conv f x);
      split_cost (sum (map (fun f => conv f x) bs)); split_cost (val R x); simpl; auto; lia.
Qed.

(** Without the last step, which moves the smallest entries of tables that were added up. *)
Definition load_sums (m : model) : option red :=
  do R <- load_all load_own (Red Leaf xH Leaf 0 0 false) (owns 1 (unary m));
  do Q <- load_all load_factor R (factors m);
  let b := lows (blocks m) in
  Some (Red (cells Q) (next Q) (of Q) (base Q) (b + most + 1) (closed Q)).

Definition load (m : model) : option red := do R <- load_sums m; normalise R.

Definition total_units (m : model) (x : labelling) : cost := sum (map (fun f => units f x) (blocks m)).

Definition units_spec (m : model) (R : red) : Prop := forall x,
  le (cmin (Fin (cut R)) (val R x)) (total_units m x) /\
  (forall u, total_units m x = Fin u -> cut R <= u \/ (common_of (blocks m) 0 | u)).

Lemma load_sums_spec m R : load_sums m = Some R -> units_spec m R.
Proof.
  unfold load_sums. destruct (load_all load_own _ _) as [P|] eqn:LP; [|easy].
  destruct (load_all load_factor P _) as [Q|] eqn:LQ; [|easy]. got. intros x. cbn [cut].
  apply (load_all_val _ _ load_own_adds _ _ x) in LP.
  apply (load_all_val _ _ load_factor_adds _ _ x) in LQ.
  assert (S := blocks_spec (blocks m) x 0). unfold total_units.
  assert (B : le (val Q x) (plus (Fin (lows (blocks m))) (sum (map (fun f => conv f x) (blocks m))))).
  { unfold blocks. rewrite map_app, sum_app.
    replace (lows (owns 1 (unary m) ++ factors m)) with (lows (owns 1 (unary m)) + lows (factors m)).
    - change (val _ x) with (Fin 0) in LP at 2. revert LP LQ.
      split_cost (val Q x); split_cost (val P x);
        split_cost (sum (map (fun f => conv f x) (owns 1 (unary m))));
        split_cost (sum (map (fun f => conv f x) (factors m))); simpl; auto; lia.
    - unfold lows. rewrite map_app. induction (map low (owns 1 (unary m))); simpl; lia. }
  replace (val (Red _ _ _ _ _ _) x) with (val Q x) by reflexivity.
  destruct S as [S1 S2]. destruct (sum (map (fun f => conv f x) (blocks m))) as [c|].
  - destruct S1 as [S1 D]. rewrite S1 in *. split.
    + split_cost (val Q x); simpl in *; auto; lia.
    + intros u [= <-]. auto.
  - split; [eapply le_trans; [apply cmin_l|auto]|]. intros u U. rewrite U in S1. simpl in S1. auto.
Qed.

Lemma load_spec m R : load m = Some R -> units_spec m R.
Proof.
  unfold load. destruct (load_sums m) as [Q|] eqn:L; [|easy]. intros N x.
  apply normalise_val in N as (C & V & _). rewrite V, C. now apply load_sums_spec.
Qed.

End Blocks.
