(** The state of a search node: reduced costs, labels that are present, and the steps on them. *)

Require Import ZArith List Lia Bool.
Require Import Statement Costs Reduce.
Import ListNotations.
Local Open Scope Z_scope.

(** A factor: its costs are those of its table minus the costs moved to the labels of its axes. *)
Record fac := Fac { scope : list positive; tab : table; moved : list (list Z) }.

(** The costs moved to some labels. *)
Fixpoint msum (m : list (list Z)) (idx : list nat) : Z :=
  match m, idx with
  | row :: m', a :: idx' => nth a row 0 + msum m' idx'
  | _, _ => 0
  end.

Definition fval (x : labelling) (g : fac) : cost :=
  minus (entry (tab g) (map x (scope g))) (msum (moved g) (map x (scope g))).

(** A variable has, for each label, whether it is present, and its cost. *)
Notation labels := (list (bool * cost)).
Definition uval (x : labelling) (p : positive * labels) : cost :=
  match nth_error (snd p) (x (fst p)) with Some (_, c) => c | None => Inf end.

Ltac costs :=
  repeat match goal with
  | |- context [total ?f ?t] => split_cost (total f t)
  | |- context [uval ?x ?p] => split_cost (uval x p)
  | |- context [fval ?x ?p] => split_cost (fval x p)
  end; simpl; auto; try (f_equal; lia); try lia.

(** [words] numbers the labels of all axes of all factors. [dead] may name a variable without labels. *)
Record st := St {
  vars : trie (positive * labels); facs : trie fac; nf : positive;
  words : trie (positive * nat * nat); nw : positive; lower : Z; dead : option positive }.

Definition tcost (T : st) (x : labelling) : cost :=
  plus (total (uval x) (vars T)) (total (fval x) (facs T)).

Definition alive (T : st) (x : labelling) : Prop :=
  forall v p, get v (vars T) = Some p ->
  fst p = v /\ exists c, nth_error (snd p) (x v) = Some (true, c).

Definition nn (T : st) : Prop := forall x, alive T x ->
  (forall v p, get v (vars T) = Some p -> le (Fin 0) (uval x p)) /\
  (forall f g, get f (facs T) = Some g -> le (Fin 0) (fval x g)).

Lemma nn_nonneg T x : nn T -> alive T x -> le (Fin 0) (tcost T x).
Proof.
  intros N A. destruct (N x A) as [U F]. unfold tcost.
  change (Fin 0) with (plus (Fin 0) (Fin 0)).
  apply plus_mono; apply total_nonneg; auto.
Qed.

(** The invariant of a node, for the labellings [P] of the node: each of them costs at least [up], or
    its labels are present and it costs at least what is left. *)
Definition Inv (C : labelling -> cost) (up : Z) (P : labelling -> Prop) (T : st) : Prop :=
  nn T /\ forall x, P x ->
  le (Fin up) (C x) \/ (alive T x /\ le (plus (Fin (lower T)) (tcost T x)) (C x)).

Definition var (T : st) (v : positive) : option labels :=
  match get v (vars T) with
  | Some (u, l) => if Pos.eqb u v then Some l else None
  | None => None
  end.

Lemma var_get T v l : var T v = Some l -> get v (vars T) = Some (v, l).
Proof.
  unfold var. destruct (get v (vars T)) as [[u k]|]; [|easy].
  destruct (Pos.eqb_spec u v) as [->|]; [|easy]. congruence.
Qed.

Definition with_vars (t : trie (positive * labels)) (T : st) : st :=
  St t (facs T) (nf T) (words T) (nw T) (lower T) (dead T).
Definition with_facs (t : trie fac) (T : st) : st :=
  St (vars T) t (nf T) (words T) (nw T) (lower T) (dead T).

Ltac nodes := cbn [vars facs nf words nw lower dead with_vars with_facs].

(** ** Moving costs *)

Fixpoint change {A} (k : nat) (f : A -> A) (l : list A) : list A :=
  match l, k with
  | [], _ => []
  | a :: l', O => f a :: l'
  | a :: l', S k' => a :: change k' f l'
  end.

Lemma nth_change {A} k (f : A -> A) l i :
  nth_error (change k f l) i =
  if Nat.eqb i k then option_map f (nth_error l i) else nth_error l i.
Proof.
  revert k i. induction l as [|a l IH]; intros [|k] [|i]; simpl; auto.
  now destruct (Nat.eqb i k).
Qed.

Lemma msum_change m idx axis a d row :
  nth_error m axis = Some row -> (a < length row)%nat -> length idx = length m ->
  msum (change axis (change a (Z.add d)) m) idx =
  msum m idx + (match nth_error idx axis with
                | Some b => if Nat.eqb b a then d else 0
                | None => 0
                end).
Proof.
  revert idx axis. induction m as [|r m IH]; intros [|i idx] [|axis] R A L; simpl in *; try easy.
  - injection R as ->. destruct (Nat.eqb_spec i a) as [->|N].
    + assert (E := nth_change a (Z.add d) row a). rewrite Nat.eqb_refl in E.
      destruct (nth_error row a) as [e|] eqn:W; [|apply nth_error_None in W; lia].
      rewrite (nth_error_nth _ _ _ E), (nth_error_nth _ _ _ W). lia.
    + assert (E := nth_change a (Z.add d) row i). apply Nat.eqb_neq in N. rewrite N in E.
      destruct (nth_error row i) as [e|] eqn:W.
      * rewrite (nth_error_nth _ _ _ E), (nth_error_nth _ _ _ W). lia.
      * apply nth_error_None in W, E. rewrite !nth_overflow by auto. lia.
  - rewrite IH by (auto; lia). lia.
Qed.

(** A move: factor, axis, label, variable, amount. *)
Record move := Move { mf : positive; maxis : nat; mlabel : nat; mvar : positive; mby : Z }.

Definition word (T : st) (w : Z) : option (positive * nat * nat) :=
  do k <- number w; get k (words T).

Definition find_move (T : st) (p : Z * Z) : option move :=
  do (fa, a) <- word T (fst p);
  let '(f, axis) := fa in
  do g <- get f (facs T);
  do v <- nth_error (scope g) axis;
  Some (Move f axis a v (snd p)).

Definition raise_label (d : Z) (q : bool * cost) : bool * cost := (fst q, plus (Fin d) (snd q)).

Definition move1 (T : st) (m : move) : option st :=
  do g <- get (mf m) (facs T);
  do v <- nth_error (scope g) (maxis m);
  do l <- var T v;
  do row <- nth_error (moved g) (maxis m);
  ensure (Pos.eqb v (mvar m));
  ensure (Nat.ltb (mlabel m) (length row) && Nat.eqb (length (scope g)) (length (moved g)));
  let g' := Fac (scope g) (tab g) (change (maxis m) (change (mlabel m) (Z.add (mby m))) (moved g)) in
  Some (with_vars (set v (Some (v, change (mlabel m) (raise_label (mby m)) l)) (vars T))
         (with_facs (set (mf m) (Some g') (facs T)) T)).

Lemma uval_change x v l a d :
  uval x (v, change a (raise_label d) l) =
  plus (Fin (if Nat.eqb (x v) a then d else 0)) (uval x (v, l)).
Proof.
  unfold uval. cbn [fst snd]. rewrite nth_change.
  destruct (Nat.eqb (x v) a), (nth_error l (x v)) as [[b c]|]; simpl; auto. now rewrite plus_0.
Qed.

Lemma fval_change x g axis a d v row :
  nth_error (scope g) axis = Some v -> nth_error (moved g) axis = Some row ->
  (a < length row)%nat -> length (scope g) = length (moved g) ->
  fval x (Fac (scope g) (tab g) (change axis (change a (Z.add d)) (moved g))) =
  minus (fval x g) (if Nat.eqb (x v) a then d else 0).
Proof.
  intros V R A L. unfold fval. cbn [scope tab moved].
  rewrite (msum_change _ _ _ _ _ _ R A) by (now rewrite map_length).
  rewrite nth_error_map, V. cbn [option_map].
  split_cost (entry (tab g) (map x (scope g))); simpl; auto. f_equal. lia.
Qed.

Ltac bind H :=
  repeat match type of H with
  | match ?a with Some _ => _ | None => None end = Some _ =>
      let E := fresh "E" in destruct a eqn:E; [|discriminate H]
  | (if ?a then _ else None) = Some _ =>
      let E := fresh "E" in destruct a eqn:E; [|discriminate H]
  | (let (_, _) := ?a in _) = Some _ =>
      let E := fresh "E" in destruct a eqn:E
  end.

(** What a sequence of moves changes. *)
Definition moved_to (T T' : st) (ms : list move) : Prop :=
  lower T' = lower T /\ (forall x, tcost T' x = tcost T x) /\
  (forall f g', get f (facs T') = Some g' ->
   exists g, get f (facs T) = Some g /\ forall x,
   (exists m, In m ms /\ mf m = f /\ nth_error (scope g') (maxis m) = Some (mvar m) /\
              mlabel m = x (mvar m) /\ mby m > 0)
   \/ le (fval x g) (fval x g')) /\
  (forall v p', get v (vars T') = Some p' ->
   exists p, get v (vars T) = Some p /\ fst p = fst p' /\
   (forall i, option_map fst (nth_error (snd p) i) = option_map fst (nth_error (snd p') i)) /\
   forall x, (exists m, In m ms /\ mvar m = v /\ mlabel m = x v /\ mby m < 0)
             \/ le (uval x p) (uval x p')) /\
  (forall f g, get f (facs T) = Some g ->
   exists g', get f (facs T') = Some g' /\ scope g' = scope g /\ tab g' = tab g) /\
  (forall v p, get v (vars T) = Some p -> exists p', get v (vars T') = Some p').

Lemma move1_to T m T' : move1 T m = Some T' -> moved_to T T' [m].
Proof.
  unfold move1. intros H. destruct (get (mf m) (facs T)) as [g|] eqn:G; [|easy].
  destruct (nth_error (scope g) (maxis m)) as [v|] eqn:V; [|easy].
  destruct (var T v) as [l|] eqn:L; [|easy].
  destruct (nth_error (moved g) (maxis m)) as [row|] eqn:R; [|easy].
  destruct (Pos.eqb_spec v (mvar m)) as [Ev|]; [|easy].
  destruct (Nat.ltb_spec (mlabel m) (length row)) as [A|]; [|easy].
  destruct (Nat.eqb_spec (length (scope g)) (length (moved g))) as [B|]; [|easy].
  apply some_inj in H. subst T'. apply var_get in L.
  assert (FC := fun x => fval_change x g (maxis m) (mlabel m) (mby m) v row V R A B).
  assert (UC := fun x => uval_change x v l (mlabel m) (mby m)).
  split; [auto|split; [|split; [|split; [|split]]]]; nodes.
  - intros x. unfold tcost. nodes.
    rewrite (total_set _ v), (total_set _ (mf m)), (total_at _ _ _ _ L), (total_at _ _ _ _ G). unfold one. rewrite FC, UC.
    generalize (if Nat.eqb (x v) (mlabel m) then mby m else 0). intros d.
    costs.
  - intros f g' E. destruct (Pos.eq_dec f (mf m)) as [->|N].
    + rewrite get_set_same in E. injection E as <-. exists g. split; auto. intros x.
      rewrite FC. cbn [scope]. destruct (Nat.eqb_spec (x v) (mlabel m)) as [Q|Q].
      * destruct (Z_gt_le_dec (mby m) 0) as [P|P].
        -- left. exists m. subst v. simpl. auto 10.
        -- right. costs.
      * right. costs.
    + rewrite get_set_other in E by auto. exists g'. auto.
  - intros u p' E. destruct (Pos.eq_dec u v) as [->|N].
    + rewrite get_set_same in E. injection E as <-. exists (v, l). split; [auto|split; [auto|split]].
      * intros i. cbn [snd]. rewrite nth_change.
        destruct (Nat.eqb i (mlabel m)), (nth_error l i) as [[b c]|]; auto.
      * intros x. rewrite UC. destruct (Nat.eqb_spec (x v) (mlabel m)) as [Q|Q].
        -- destruct (Z_lt_ge_dec (mby m) 0) as [P|P].
           ++ left. exists m. subst v. simpl. auto 10.
           ++ right. costs.
        -- right. rewrite plus_0. auto.
    + rewrite get_set_other in E by auto. exists p'. auto 10.
  - intros f g1 E. destruct (Pos.eq_dec f (mf m)) as [->|N].
    + rewrite get_set_same. rewrite G in E. injection E as <-. eexists. split; [reflexivity|]. auto.
    + rewrite get_set_other by auto. exists g1. auto.
  - intros u p E. destruct (Pos.eq_dec u v) as [->|N]; [rewrite get_set_same; eauto|].
    rewrite get_set_other by auto. eauto.
Qed.

Fixpoint moves (T : st) (ms : list move) : option st :=
  match ms with
  | [] => Some T
  | m :: rest => do T' <- move1 T m; moves T' rest
  end.

Lemma moved_to_nil T : moved_to T T [].
Proof.
  split; [auto|split; [auto|split; [|split; [|split]]]].
  - intros f g G. exists g. auto.
  - intros v p G. exists p. auto 10.
  - intros f g G. exists g. auto.
  - eauto.
Qed.

Lemma moved_to_cons T U V m ms : moved_to T U [m] -> moved_to U V ms -> moved_to T V (m :: ms).
Proof.
  intros (L1 & C1 & F1 & U1 & S1 & W1) (L2 & C2 & F2 & U2 & S2 & W2).
  split; [congruence|split; [intros x; now rewrite C2, C1|split; [|split; [|split]]]].
  - intros f g2 G2. destruct (F2 _ _ G2) as (g1 & G1 & H2).
    destruct (F1 _ _ G1) as (g & G & H1). exists g. split; auto. intros x.
    destruct (S2 _ _ G1) as (g2' & G2' & SC & _). rewrite G2 in G2'. injection G2' as <-.
    destruct (H2 x) as [(n & N & H)|H2x]; [left; exists n; split; [now right|auto]|].
    destruct (H1 x) as [(n & N & H)|H1x].
    + left. exists n. split; [destruct N as [->|[]]; now left|]. now rewrite SC.
    + right. eapply le_trans; eauto.
  - intros v p2 G2. destruct (U2 _ _ G2) as (p1 & G1 & E2 & I2 & H2).
    destruct (U1 _ _ G1) as (p & G & E1 & I1 & H1). exists p.
    split; [auto|split; [congruence|split; [intros i; now rewrite I1, I2|]]]. intros x.
    destruct (H2 x) as [(n & N & H)|H2x]; [left; exists n; split; [now right|auto]|].
    destruct (H1 x) as [(n & N & H)|H1x].
    + left. exists n. split; [destruct N as [->|[]]; now left|auto].
    + right. eapply le_trans; eauto.
  - intros f g G. destruct (S1 _ _ G) as (g1 & G1 & A1 & B1).
    destruct (S2 _ _ G1) as (g2 & G2 & A2 & B2). exists g2. split; [auto|]. split; congruence.
  - intros v p G. destruct (W1 _ _ G) as [q Q]. eauto.
Qed.

Lemma moves_to ms : forall T T', moves T ms = Some T' -> moved_to T T' ms.
Proof.
  induction ms as [|m ms IH]; simpl; intros T T' H.
  - injection H as <-. apply moved_to_nil.
  - destruct (move1 T m) as [U|] eqn:M; [|easy]. eapply moved_to_cons; eauto using move1_to.
Qed.

(** ** Costs moved from all labels of variables to [lower] *)

Definition fall1 (T : st) (p : positive * Z) : option st :=
  let '(v, d) := p in
  do l <- var T v;
  ensure (0 <=? d);
  let l' := map (raise_label (- d)) l in
  Some (St (set v (Some (v, l')) (vars T)) (facs T) (nf T) (words T) (nw T) (lower T + d) (dead T)).

Fixpoint falls (T : st) (ps : list (positive * Z)) : option st :=
  match ps with
  | [] => Some T
  | p :: rest => do T' <- fall1 T p; falls T' rest
  end.

Definition fallen (T T' : st) (vs : list positive) : Prop :=
  (forall x, plus (Fin (lower T')) (tcost T' x) = plus (Fin (lower T)) (tcost T x)) /\
  facs T' = facs T /\
  (forall v p', get v (vars T') = Some p' ->
   exists p, get v (vars T) = Some p /\ fst p = fst p' /\
   (forall i, option_map fst (nth_error (snd p) i) = option_map fst (nth_error (snd p') i)) /\
   (In v vs \/ p' = p)) /\
  (forall v p, get v (vars T) = Some p -> exists p', get v (vars T') = Some p').

Lemma fall1_to T v d T' : fall1 T (v, d) = Some T' -> fallen T T' [v].
Proof.
  unfold fall1. destruct (var T v) as [l|] eqn:L; [|easy]. destruct (0 <=? d); [|easy]. got.
  apply var_get in L. split; [|split; [|split]]; nodes; auto.
  - intros x. unfold tcost. nodes. rewrite total_set, (total_at _ _ _ _ L). unfold one.
    replace (uval x (v, map (raise_label (- d)) l)) with (plus (Fin (- d)) (uval x (v, l))).
    + costs.
    + unfold uval. cbn [fst snd]. rewrite nth_error_map.
      destruct (nth_error l (x v)) as [[b c]|]; auto.
  - intros u p' E. destruct (Pos.eq_dec u v) as [->|N].
    + rewrite get_set_same in E. injection E as <-. exists (v, l).
      split; [auto|split; [auto|split; [|left; now left]]]. intros i. cbn [snd].
      rewrite nth_error_map. destruct (nth_error l i) as [[b c]|]; auto.
    + rewrite get_set_other in E by auto. exists p'. auto 10.
  - intros u p E. destruct (Pos.eq_dec u v) as [->|N]; [rewrite get_set_same; eauto|].
    rewrite get_set_other by auto. eauto.
Qed.

Lemma falls_to ps : forall T T', falls T ps = Some T' -> fallen T T' (map fst ps).
Proof.
  induction ps as [|[v d] ps IH]; intros T T' H.
  - injection H as <-. split; [auto|split; [auto|split; [|eauto]]]. intros v p G. exists p. auto 10.
  - cbn [falls] in H. destruct (fall1 T (v, d)) as [U|] eqn:F; [|easy].
    apply fall1_to in F as (C1 & S1 & V1 & W1). apply IH in H as (C2 & S2 & V2 & W2).
    split; [intros x; now rewrite C2, C1|split; [congruence|split]];
      [|intros u p G; destruct (W1 _ _ G) as [q Q]; eauto].
    intros u p2 G2. destruct (V2 _ _ G2) as (p1 & G1 & E2 & I2 & H2).
    destruct (V1 _ _ G1) as (p & G & E1 & I1 & H1). exists p.
    split; [auto|split; [congruence|split; [intros i; now rewrite I1, I2|]]].
    simpl. destruct H2 as [H2| ->]; auto. destruct H1 as [[->|[]]|H1]; auto.
Qed.

(** ** The smallest cost of a label in a factor *)

Definition live (T : st) (v : positive) : list nat :=
  match var T v with
  | Some l => map fst (filter (fun q => fst (snd q)) (combine (seq 0 (length l)) l))
  | None => []
  end.

Lemma in_combine_seq {A} (l : list A) : forall s i a,
  In (i, a) (combine (seq s (length l)) l) <-> (s <= i)%nat /\ nth_error l (i - s) = Some a.
Proof.
  induction l as [|b l IH]; intros s i a; simpl.
  - split; [easy|]. intros [_ H]. destruct (i - s)%nat; easy.
  - rewrite IH. split.
    + intros [[= -> ->]|[H E]]; [split; [lia|now rewrite Nat.sub_diag]|]. split; [lia|].
      replace (i - s)%nat with (S (i - S s)) by lia. auto.
    + intros [H E]. destruct (Nat.eq_dec i s) as [->|N].
      * left. rewrite Nat.sub_diag in E. now injection E as ->.
      * right. split; [lia|]. replace (i - s)%nat with (S (i - S s)) in E by lia. auto.
Qed.

Lemma live_in T v l a : var T v = Some l ->
  (In a (live T v) <-> exists c, nth_error l a = Some (true, c)).
Proof.
  intros L. unfold live. rewrite L. rewrite in_map_iff. split.
  - intros ((i & [b c]) & <- & H). apply filter_In in H as [H B]. cbn in B. subst b.
    apply in_combine_seq in H as [_ H]. rewrite Nat.sub_0_r in H. simpl. eauto.
  - intros [c H]. exists (a, (true, c)). split; auto. apply filter_In. split; auto.
    apply in_combine_seq. rewrite Nat.sub_0_r. split; [lia|auto].
Qed.

Lemma alive_in T x v l : alive T x -> var T v = Some l -> In (x v) (live T v).
Proof.
  intros A L. apply (live_in _ _ l); auto. apply var_get in L. destruct (A _ _ L) as [_ [c H]].
  eauto.
Qed.

Definition lcost (T : st) (v : positive) (a : nat) : cost :=
  match var T v with
  | Some l => match nth_error l a with Some (_, c) => c | None => Inf end
  | None => Inf
  end.

Lemma lcost_uval T v l x : var T v = Some l -> lcost T v (x v) = uval x (v, l).
Proof. intros L. unfold lcost, uval. now rewrite L. Qed.

Definition lsum (T : st) (vs : list positive) (idx : list nat) : cost :=
  sum (map (fun p => lcost T (fst p) (snd p)) (combine vs idx)).

Fixpoint known (T : st) (vs : list positive) : bool :=
  match vs with
  | [] => true
  | v :: rest => match var T v with Some _ => known T rest | None => false end
  end.

Lemma known_in T vs v : known T vs = true -> In v vs -> exists l, var T v = Some l.
Proof.
  induction vs as [|u vs IH]; simpl; [easy|]. destruct (var T u) as [l|] eqn:E; [|easy].
  intros K [->|I]; eauto.
Qed.

Definition labels_of (T : st) (v : positive) : labels :=
  match var T v with Some l => l | None => [] end.

(** The smallest entry minus the costs moved, and with [own] plus the costs of its labels, over
    present labels; tables and lists are gone through in step. *)
Fixpoint walk (t : table) (m : list (list Z)) (ls : list labels) (own : bool) (moved_ : Z) (more : cost) : cost :=
  match ls, t with
  | [], Val c => plus (minus c moved_) more
  | l :: ls', Row rows =>
      (fix go rows mrow l :=
         match rows, l with
         | r :: rows', (present, c) :: l' =>
             let rest := go rows' (tl mrow) l' in
             if present : bool
             then cmin (walk r (tl m) ls' own (moved_ + hd 0 mrow) (if own then plus c more else more)) rest
             else rest
         | _, _ => Inf
         end) rows (hd [] m) l
  | _, _ => Inf
  end.

(** The smallest cost of a label, with present labels of the other variables. *)
Definition leastw (T : st) (g : fac) (axis a : nat) (own : bool) : cost :=
  let at_a := match nth_error (moved g) axis with Some row => nth a row 0 | None => 0 end in
  walk (slice axis a (tab g)) (drop axis (moved g)) (map (labels_of T) (drop axis (scope g))) own at_a (Fin 0).

Lemma walk_le T x own vs : alive T x -> known T vs = true -> forall t m moved_ more,
  le (walk t m (map (labels_of T) vs) own moved_ more)
     (plus (minus (entry t (map x vs)) (moved_ + msum m (map x vs)))
           (plus more (if own then lsum T vs (map x vs) else Fin 0))).
Proof.
  intros A. induction vs as [|v vs IH]; intros K t m moved_ more.
  - destruct t as [c|rows]; [|simpl; auto]. cbn [map walk entry].
    assert (M : msum m [] = 0) by now destruct m. rewrite M. unfold lsum.
    destruct own; destruct c, more; simpl; auto; lia.
  - simpl in K. destruct (var T v) as [l|] eqn:L; [|easy]. cbn [map]. unfold labels_of at 1. rewrite L.
    destruct t as [c|rows]; [simpl; auto|]. cbn [walk entry].
    destruct (A _ _ (var_get _ _ _ L)) as [_ [c C]]. cbn [snd] in C.
    destruct (nth_error rows (x v)) as [r|] eqn:R; [|simpl; auto].
    assert (E : plus more (if own then lsum T (v :: vs) (x v :: map x vs) else Fin 0) =
      plus (if own then plus c more else more) (if own then lsum T vs (map x vs) else Fin 0)).
    { destruct own; auto. unfold lsum. cbn [combine map]. rewrite sum_cons. cbn [fst snd].
      unfold lcost at 1. rewrite L, C. rewrite plus_assoc, (plus_comm more). auto. }
    rewrite E. clear E.
    replace (moved_ + msum m (x v :: map x vs))
      with ((moved_ + nth (x v) (hd [] m) 0) + msum (tl m) (map x vs))
      by (destruct m as [|row m]; cbn [hd tl msum];
          [assert (nth (x v) [] 0 = 0) by (now destruct (x v)); lia|lia]).
    eapply le_trans; [|apply (IH K)]. clear IH. revert C R. generalize (hd [] m) (x v).
    revert l L. assert (G : forall rows mrow l a, nth_error l a = Some (true, c) -> nth_error rows a = Some r ->
      le ((fix go rows mrow (l : labels) :=
         match rows, l with
         | r :: rows', (present, c) :: l' =>
             let rest := go rows' (tl mrow) l' in
             if present : bool
             then cmin (walk r (tl m) (map (labels_of T) vs) own (moved_ + hd 0 mrow)
                         (if own then plus c more else more)) rest
             else rest
         | _, _ => Inf
         end) rows mrow l)
         (walk r (tl m) (map (labels_of T) vs) own (moved_ + nth a mrow 0) (if own then plus c more else more))).
    { clear. induction rows as [|q rows IHr]; intros mrow l a C R; [destruct a; easy|].
      destruct l as [|[present e] l]; [destruct a; easy|]. destruct a as [|a]; simpl in C, R.
      - injection R as ->. injection C as -> ->. cbv zeta. destruct mrow; apply cmin_l.
      - cbv zeta. replace (nth (S a) mrow 0) with (nth a (tl mrow) 0) by (destruct mrow; [now destruct a|auto]).
        destruct present; [eapply le_trans; [apply cmin_r|]|]; apply IHr; auto. }
    intros l L mrow a C R. now apply G.
Qed.

Lemma msum_drop m idx axis a : nth_error idx axis = Some a ->
  msum m idx = (match nth_error m axis with Some row => nth a row 0 | None => 0 end)
               + msum (drop axis m) (drop axis idx).
Proof.
  revert idx axis. induction m as [|r m IH]; intros [|i idx] [|axis] H; simpl in *; try easy.
  - now injection H as ->.
  - rewrite (IH _ _ H). lia.
Qed.

Lemma alive_choices T x vs : alive T x -> known T vs = true ->
  Forall2 (fun a c => In a c) (map x vs) (map (live T) vs).
Proof.
  intros A. induction vs as [|v vs IH]; simpl; [constructor|].
  destruct (var T v) as [l|] eqn:L; [|easy]. intros K. constructor; auto. eapply alive_in; eauto.
Qed.

Lemma leastw_le T g axis v own x :
  alive T x -> nth_error (scope g) axis = Some v -> known T (drop axis (scope g)) = true ->
  le (leastw T g axis (x v) own)
     (plus (fval x g) (if own then lsum T (drop axis (scope g)) (map x (drop axis (scope g)))
                       else Fin 0)).
Proof.
  intros A V K. unfold leastw. eapply le_trans; [now apply (walk_le T x)|].
  assert (N : nth_error (map x (scope g)) axis = Some (x v)) by now rewrite nth_error_map, V.
  unfold fval. rewrite (msum_drop _ _ _ _ N). rewrite map_drop.
  rewrite (entry_slice _ _ _ _ N), plus_0. auto.
Qed.

(** ** STEP: costs *)

Definition check_move (T : st) (m : move) : bool :=
  match var T (mvar m), get (mf m) (facs T) with
  | Some l, Some g =>
      match nth_error l (mlabel m) with
      | Some (true, c) =>
          ((0 <=? mby m) || leb (Fin 0) c) &&
          ((mby m <=? 0) ||
           (known T (drop (maxis m) (scope g))
            && leb (Fin 0) (leastw T g (maxis m) (mlabel m) false)))
      | Some (false, _) => true
      | None => false
      end
  | _, _ => false
  end.

Definition check_fall (T : st) (v : positive) : bool :=
  match var T v with
  | Some l => forallb (fun q => negb (fst q) || leb (Fin 0) (snd q)) l
  | None => false
  end.

Definition step_costs (T : st) (ms : list move) (ps : list (positive * Z)) : option st :=
  do T1 <- moves T ms;
  do T2 <- falls T1 ps;
  ensure (forallb (check_move T2) ms && forallb (check_fall T2) (map fst ps));
  Some T2.

Lemma step_costs_inv C up P T ms ps T' :
  step_costs T ms ps = Some T' -> Inv C up P T -> Inv C up P T'.
Proof.
  unfold step_costs. destruct (moves T ms) as [T1|] eqn:M; [|easy].
  destruct (falls T1 ps) as [T2|] eqn:F; [|easy].
  destruct (forallb (check_move T2) ms && forallb (check_fall T2) (map fst ps)) eqn:Q; [|easy]. got.
  apply andb_true_iff in Q as [QM QF]. rewrite forallb_forall in QM, QF.
  apply moves_to in M as (L1 & C1 & F1 & U1 & S1 & W1). apply falls_to in F as (C2 & F2 & U2 & W2).
  intros [N I].
  assert (V : forall v p', get v (vars T') = Some p' ->
    exists p, get v (vars T) = Some p /\ fst p = fst p' /\
    (forall i, option_map fst (nth_error (snd p) i) = option_map fst (nth_error (snd p') i))).
  { intros v p2 G2. destruct (U2 _ _ G2) as (p1 & G1 & E2 & I2 & _).
    destruct (U1 _ _ G1) as (p & G & E1 & I1 & _). exists p.
    split; [auto|split; [congruence|]]. intros i. now rewrite I1, I2. }
  assert (W : forall v p, get v (vars T) = Some p -> exists p', get v (vars T') = Some p').
  { intros v p G. destruct (W1 _ _ G) as [q Q]. eauto. }
  split.
  - intros x A'. assert (A : alive T x).
    { intros v p G. destruct (W _ _ G) as [p' G']. destruct (V _ _ G') as (q & Gq & E & J).
      rewrite G in Gq. injection Gq as <-. destruct (A' _ _ G') as [B [c B']].
      split; [congruence|]. specialize (J (x v)). rewrite B' in J.
      destruct (nth_error (snd p) (x v)) as [[b e]|]; [|easy]. simpl in J. injection J as ->. eauto. }
    destruct (N x A) as [NU NF]. split.
    + intros v p2 G2. destruct (U2 _ _ G2) as (p1 & G1 & E2 & I2 & [H2| ->]).
      * apply QF in H2. unfold check_fall in H2.
        destruct (var T' v) as [l|] eqn:L; [|easy]. apply var_get in L. rewrite L in G2.
        injection G2 as <-. rewrite forallb_forall in H2. destruct (A' _ _ L) as [_ [c X]].
        assert (X' := nth_error_In _ _ X). apply H2 in X'. cbn [fst snd negb orb] in X'. unfold uval. cbn [fst snd].
        cbn [snd] in X. rewrite X. now apply leb_le in X'.
      * destruct (U1 _ _ G1) as (p & G & E1 & I1 & H1). destruct (H1 x) as [(m & Im & Mv & Ml & Mb)|H].
        -- apply QM in Im. unfold check_move in Im. rewrite Mv, Ml in Im.
           destruct (var T' v) as [l|] eqn:L; [|easy]. apply var_get in L. rewrite L in G2.
           injection G2 as <-. destruct (get (mf m) (facs T')); [|easy].
           destruct (A' _ _ L) as [_ [c X]]. cbn [snd] in X. rewrite X in Im.
           apply andb_true_iff in Im as [Im _]. unfold uval. cbn [fst snd]. rewrite X.
           destruct (Z.leb_spec 0 (mby m)); [lia|]. now apply (leb_le (Fin 0) c).
        -- eapply le_trans; [|apply H]. eapply NU, G.
    + intros f g2 G2. assert (G1 := G2). rewrite F2 in G1. destruct (F1 _ _ G1) as (g & G & H1).
      destruct (H1 x) as [(m & Im & Mf & Mn & Ml & Mb)|H].
      * apply QM in Im. unfold check_move in Im. rewrite Mf, Ml, G2 in Im.
        destruct (var T' (mvar m)) as [l|] eqn:L; [|easy]. apply var_get in L.
        destruct (A' _ _ L) as [_ [c X]]. cbn [snd] in X. rewrite X in Im.
        apply andb_true_iff in Im as [_ Im]. destruct (Z.leb_spec (mby m) 0); [lia|].
        apply andb_true_iff in Im as [K Im]. apply leb_le in Im.
        eapply le_trans; [apply Im|].
        assert (E := leastw_le T' g2 (maxis m) (mvar m) false x A' Mn K).
        now rewrite plus_comm, plus_0 in E.
      * eapply le_trans; [|apply H]. eapply NF, G.
  - intros x Px. destruct (I x Px) as [H|[A H]]; auto. right. split.
    + intros v p' G'. destruct (V _ _ G') as (p & G & E & J). destruct (A _ _ G) as [B [c B']].
      split; [congruence|]. specialize (J (x v)). rewrite B' in J.
      destruct (nth_error (snd p') (x v)) as [[b e]|]; [|easy]. simpl in J. injection J as <-. eauto.
    + rewrite C2, C1, L1. auto.
Qed.

(** ** STEP: labels *)

Definition kill (v : positive) (a : nat) (T : st) : option st :=
  do l <- var T v;
  let l' := change a (fun q => (false, snd q)) l in
  let empty := if existsb fst l' then dead T else Some v in
  Some (St (set v (Some (v, l')) (vars T)) (facs T) (nf T) (words T) (nw T) (lower T) empty).

Lemma kill_inv C up P T v a T' : kill v a T = Some T' -> Inv C up P T ->
  (forall x, alive T x -> x v = a -> le (Fin up) (plus (Fin (lower T)) (tcost T x))) ->
  Inv C up P T'.
Proof.
  unfold kill. destruct (var T v) as [l|] eqn:L; [|easy]. got. apply var_get in L.
  set (l' := change a (fun q => (false, snd q)) l).
  set (T' := St _ _ _ _ _ _ _).
  assert (N' : forall i, nth_error l' i =
    if Nat.eqb i a then option_map (fun q => (false, snd q)) (nth_error l i) else nth_error l i)
    by (intros; apply nth_change).
  assert (A' : forall x, alive T' x <-> alive T x /\ x v <> a).
  { intros x. split.
    - intros A. assert (V : nth_error l (x v) <> None /\ x v <> a /\
        exists c, nth_error l (x v) = Some (true, c)).
      { destruct (A v (v, l')) as [_ [c E]]; [apply get_set_same|]. cbn [snd] in E.
        rewrite N' in E. destruct (Nat.eqb_spec (x v) a).
        - destruct (nth_error l (x v)); easy.
        - split; [congruence|split; eauto]. }
      split; [|tauto]. intros u p G. destruct (Pos.eq_dec u v) as [->|N].
      + rewrite L in G. injection G as <-. split; [auto|tauto].
      + apply A. unfold T'. nodes. now rewrite get_set_other.
    - intros [A X] u p G. unfold T' in G. cbn [vars] in G.
      destruct (Pos.eq_dec u v) as [->|N].
      + rewrite get_set_same in G. injection G as <-. split; auto. cbn [snd]. rewrite N'.
        destruct (Nat.eqb_spec (x v) a); [easy|]. destruct (A _ _ L) as [_ H]. auto.
      + rewrite get_set_other in G by auto. auto. }
  assert (U : forall x, uval x (v, l') = uval x (v, l)).
  { intros x. unfold uval. cbn [fst snd]. rewrite N'.
    destruct (Nat.eqb (x v) a), (nth_error l (x v)) as [[b c]|]; auto. }
  assert (TC : forall x, tcost T' x = tcost T x).
  { intros x. unfold tcost, T'. nodes. rewrite total_set, (total_at _ _ _ _ L). unfold one.
    now rewrite U. }
  intros [N I] R. split.
  - intros x A. apply A' in A as [A X]. destruct (N x A) as [NU NF]. split; auto.
    intros u p G. unfold T' in G. cbn [vars] in G. destruct (Pos.eq_dec u v) as [->|Q].
    + rewrite get_set_same in G. injection G as <-. rewrite U. eapply NU, L.
    + rewrite get_set_other in G by auto. eapply NU, G.
  - intros x Px. destruct (I x Px) as [H|[A H]]; auto.
    destruct (Nat.eq_dec (x v) a) as [E|E].
    + left. eapply le_trans; [apply (R x A E)|auto].
    + right. rewrite A', TC. auto.
Qed.

Fixpoint distinct (l : list positive) : bool :=
  match l with
  | [] => true
  | v :: rest => negb (mem v rest) && distinct rest
  end.

(** The sum of unary costs of some variables is at most that of all. *)
Lemma lsum_le T x vs : forall t,
  (forall v p, get v t = Some p -> le (Fin 0) (uval x p)) -> distinct vs = true ->
  (forall v, In v vs -> exists l, var T v = Some l /\ get v t = Some (v, l)) ->
  le (lsum T vs (map x vs)) (total (uval x) t).
Proof.
  unfold lsum. induction vs as [|v vs IH]; intros t N D K; [now apply total_nonneg|].
  cbn [map combine]. rewrite sum_cons. cbn [fst snd].
  destruct (K v) as (l & L & G); [now left|]. rewrite (lcost_uval _ _ _ _ L).
  rewrite (total_at _ _ _ _ G). apply plus_le. simpl in D. apply andb_true_iff in D as [M D].
  apply negb_true_iff in M. apply mem_not in M. apply IH; auto.
  - intros u p E. apply set_none_get in E. eauto.
  - intros u I. destruct (K u) as (k & A & B); [now right|]. exists k. split; auto.
    rewrite get_set_other; auto. congruence.
Qed.

(** Whether a label costs at least [room], by its unary cost or with a factor. *)
Definition enough_own (T : st) (v : positive) (a : nat) (room : Z) : bool :=
  leb (Fin room) (lcost T v a).

Definition enough_word (T : st) (g : fac) (axis a : nat) (v : positive) (room : Z) : bool :=
  let others := drop axis (scope g) in
  distinct (v :: others) && known T (v :: others)
  && leb (Fin room) (plus (lcost T v a) (leastw T g axis a true)).

Lemma enough_own_le T v l a room x : nn T -> alive T x -> var T v = Some l -> x v = a ->
  enough_own T v a room = true -> le (Fin room) (tcost T x).
Proof.
  intros N A L <- E. unfold enough_own in E. apply leb_le in E. rewrite (lcost_uval _ _ _ _ L) in E. apply var_get in L.
  destruct (N x A) as [NU NF]. unfold tcost. rewrite (total_at _ _ _ _ L).
  assert (R : le (Fin 0) (total (uval x) (set v None (vars T)))).
  { apply total_nonneg. intros u p G. apply set_none_get in G. eauto. }
  assert (S : le (Fin 0) (total (fval x) (facs T))) by now apply total_nonneg.
  revert E R S. costs; intros; simpl in *; try easy; lia.
Qed.

Lemma enough_word_le T f g axis a v room x : nn T -> alive T x -> get f (facs T) = Some g ->
  nth_error (scope g) axis = Some v -> x v = a ->
  enough_word T g axis a v room = true -> le (Fin room) (tcost T x).
Proof.
  intros N A G V <- E. unfold enough_word in E. apply andb_true_iff in E as [E R].
  apply andb_true_iff in E as [D K]. apply leb_le in R. eapply le_trans; [apply R|].
  destruct (N x A) as [NU NF]. unfold tcost. rewrite (total_at _ _ _ _ G).
  assert (K' : known T (drop axis (scope g)) = true).
  { simpl in K. now destruct (var T v). }
  assert (H := leastw_le T g axis v true x A V K').
  assert (J := lsum_le T x (v :: drop axis (scope g)) (vars T) NU D).
  assert (M : le (lsum T (v :: drop axis (scope g)) (map x (v :: drop axis (scope g))))
                (total (uval x) (vars T))).
  { apply J. intros u U. destruct (known_in _ _ _ K U) as [l Hl]. exists l. split; auto.
    now apply var_get. }
  unfold lsum in M. cbn [map combine] in M. rewrite sum_cons in M. cbn [fst snd] in M.
  fold (lsum T (drop axis (scope g)) (map x (drop axis (scope g)))) in M.
  assert (S : le (Fin 0) (total (fval x) (set f None (facs T)))).
  { apply total_nonneg. intros u p Q. apply set_none_get in Q. eauto. }
  revert H M S. generalize (lsum T (drop axis (scope g)) (map x (drop axis (scope g)))).
  generalize (lcost T v (x v)), (leastw T g axis (x v) true).
  intros c d e. destruct c, d, e; costs; intros; simpl in *; try easy; try lia.
Qed.

(** ** COMBINE *)

Fixpoint take_facs (fs : list positive) (t : trie fac) : option (list fac * trie fac) :=
  match fs with
  | [] => Some ([], t)
  | f :: rest =>
      do g <- get f t;
      do (gs, t') <- take_facs rest (set f None t);
      Some (g :: gs, t')
  end.

Lemma take_facs_total x fs : forall t gs t', take_facs fs t = Some (gs, t') ->
  total (fval x) t = plus (sum (map (fval x) gs)) (total (fval x) t').
Proof.
  induction fs as [|f fs IH]; simpl; intros t gs t' H.
  - injection H as <- <-. symmetry. apply plus_0.
  - destruct (get f t) as [g|] eqn:G; [|easy].
    destruct (take_facs fs (set f None t)) as [[ks u]|] eqn:E; [|easy]. injection H as <- <-.
    rewrite (total_at _ _ _ _ G), (IH _ _ _ E). cbn [map]. rewrite sum_cons. apply plus_assoc.
Qed.

Lemma take_facs_get fs : forall t gs t', take_facs fs t = Some (gs, t') ->
  (forall f g, get f t' = Some g -> get f t = Some g) /\
  (forall g, In g gs -> exists f, get f t = Some g).
Proof.
  induction fs as [|f fs IH]; simpl; intros t gs t' H.
  - injection H as <- <-. split; [auto|easy].
  - destruct (get f t) as [g|] eqn:G; [|easy].
    destruct (take_facs fs (set f None t)) as [[ks u]|] eqn:E; [|easy]. injection H as <- <-.
    destruct (IH _ _ _ E) as [A B]. split.
    + intros h k Q. apply A in Q. eapply set_none_get, Q.
    + intros k [<-|K]; [eauto|]. destruct (B _ K) as [h Q]. apply set_none_get in Q. eauto.
Qed.

Lemma fval_agree x y g : (forall v, In v (scope g) -> x v = y v) -> fval x g = fval y g.
Proof. intros H. unfold fval. now rewrite (map_ext_in _ _ _ H). Qed.

(** The smallest sum over present labels of the variables [others], for labels of two variables. *)
Definition least_sum (T : st) (gs : list fac) (own : list positive) (s others : list positive)
  (ab : list nat) : cost :=
  minover (map (live T) others) (fun r =>
    let e := env (s ++ others) (ab ++ r) in
    plus (sum (map (fval e) gs)) (sum (map (fun v => lcost T v (e v)) own))).

Definition add_words (f : positive) (axis d : nat) (p : trie (positive * nat * nat) * positive) :=
  fold_left (fun p a => (set (snd p) (Some (f, axis, a)) (fst p), Pos.succ (snd p))) (seq 0 d) p.

Definition zero_own (own : list positive) (T : st) : option (trie (positive * labels)) :=
  match own with
  | [] => Some (vars T)
  | [v] => do l <- var T v; Some (set v (Some (v, map (fun q => (fst q, Fin 0)) l)) (vars T))
  | _ => None
  end.

(** Each variable once. *)
Fixpoint unique_ (l : list positive) : list positive :=
  match l with
  | [] => []
  | v :: rest => if mem v rest then unique_ rest else v :: unique_ rest
  end.

Definition combine_ (own members s : list positive) (T : st) : option st :=
  match s with
  | [s0; s1] =>
      ensure (negb (Pos.eqb s0 s1) && Nat.leb (length members) 3);
      do (gs, fs) <- take_facs members (facs T);
      let all := unique_ (flat_map scope gs) in
      let rest := filter (fun v => negb (mem v s || mem v own)) all in
      ensure (forallb (fun v => mem v all) (s ++ own) && negb (existsb (fun v => mem v s) own));
      ensure (known T all);
      do l0 <- var T s0; do l1 <- var T s1;
      do us <- zero_own own T;
      let t := tabulate [length l0; length l1] (least_sum T gs own s (own ++ rest)) in
      let g := Fac s t [map (fun _ => 0) l0; map (fun _ => 0) l1] in
      match get (nf T) fs with
      | Some _ => None
      | None =>
          let '(ws, n) := add_words (nf T) 1 (length l1)
            (add_words (nf T) 0 (length l0) (words T, nw T)) in
          Some (St us (set (nf T) (Some g) fs) (Pos.succ (nf T)) ws n (lower T) (dead T))
      end
  | _ => None
  end.

Lemma env_choice T vs : forall idx u,
  Forall2 (fun a c => In a c) idx (map (live T) vs) -> In u vs -> In (env vs idx u) (live T u).
Proof.
  induction vs as [|v vs IH]; intros idx u F I; [easy|].
  inversion F as [|a c idx' cs A F' E1 E2]; subst. cbn [env].
  destruct (Pos.eq_dec u v) as [->|N]; [now rewrite upd_same|]. rewrite upd_other by auto.
  apply IH; auto. destruct I; congruence.
Qed.

Lemma unique_in v l : In v (unique_ l) <-> In v l.
Proof.
  induction l as [|u l IH]; simpl; [tauto|]. destruct (mem u l) eqn:M; simpl; rewrite IH; [|tauto].
  apply mem_in in M. split; [tauto|]. intros [->|H]; auto.
Qed.

Lemma known_all T vs : (forall v, In v vs -> exists l, var T v = Some l) -> known T vs = true.
Proof.
  induction vs as [|v vs IH]; simpl; intros H; auto.
  destruct (H v) as [l ->]; [now left|]. apply IH. auto.
Qed.

Lemma nth_zero {A} (l : list A) a : nth a (map (fun _ => 0) l) 0 = 0.
Proof. revert a. induction l; intros [|a']; simpl; auto. Qed.

Lemma zero_own_facts own T us : zero_own own T = Some us ->
  (forall x, alive T x ->
   total (uval x) (vars T) = plus (sum (map (fun v => lcost T v (x v)) own)) (total (uval x) us)) /\
  (forall v p, get v us = Some p -> exists q, get v (vars T) = Some q /\ fst q = fst p /\
   (forall i, option_map fst (nth_error (snd p) i) = option_map fst (nth_error (snd q) i)) /\
   (p = q \/ forall i b c, nth_error (snd p) i = Some (b, c) -> c = Fin 0)) /\
  (forall v q, get v (vars T) = Some q -> exists p, get v us = Some p).
Proof.
  unfold zero_own. destruct own as [|v [|]]; [| |easy].
  - intros [= <-]. split; [|split; [|eauto]].
    + intros x _. symmetry. apply plus_0.
    + intros v p G. exists p. auto 10.
  - destruct (var T v) as [l|] eqn:L; [|easy]. intros H. apply some_inj in H. subst us.
    assert (G := var_get _ _ _ L). split; [|split].
    + intros x A. rewrite total_set, (total_at _ _ _ _ G). cbn [map]. rewrite sum_cons.
      rewrite (lcost_uval _ _ _ _ L). unfold one.
      replace (uval x (v, map (fun q => (fst q, Fin 0)) l)) with (Fin 0).
      * change (sum []) with (Fin 0). costs.
      * destruct (A _ _ G) as [_ [c E]]. unfold uval. cbn [fst snd] in *. now rewrite nth_error_map, E.
    + intros u p E. destruct (Pos.eq_dec u v) as [->|N].
      * rewrite get_set_same in E. injection E as <-. exists (v, l).
        split; [auto|split; [auto|split]]; cbn [snd].
        -- intros i. rewrite nth_error_map. now destruct (nth_error l i).
        -- right. intros i b c. rewrite nth_error_map. destruct (nth_error l i); simpl; congruence.
      * rewrite get_set_other in E by auto. exists p. auto 10.
    + intros u q E. destruct (Pos.eq_dec u v) as [->|N]; [rewrite get_set_same; eauto|].
      rewrite get_set_other by auto. eauto.
Qed.

Lemma combine_inv C up P own members s T T' :
  combine_ own members s T = Some T' -> Inv C up P T -> Inv C up P T'.
Proof.
  unfold combine_. destruct s as [|s0 [|s1 [|]]]; try easy.
  destruct (negb (Pos.eqb s0 s1) && _); [|easy].
  destruct (take_facs members (facs T)) as [[gs fs]|] eqn:F; [|easy].
  set (all := unique_ (flat_map scope gs)). set (s := [s0; s1]).
  set (rest := filter _ all). set (others := own ++ rest).
  destruct (forallb _ (s ++ own) && _) eqn:Q; [|easy]. destruct (known T all) eqn:K; [|easy].
  destruct (var T s0) as [l0|] eqn:L0; [|easy]. destruct (var T s1) as [l1|] eqn:L1; [|easy].
  destruct (zero_own own T) as [us|] eqn:Z; [|easy].
  set (t := tabulate _ _). set (g := Fac s t _).
  destruct (get (nf T) fs) as [|] eqn:NF; [easy|].
  destruct (add_words _ _ _ _) as [ws n]. intros H. apply some_inj in H. subst T'.
  set (T' := St _ _ _ _ _ _ _).
  apply andb_true_iff in Q as [Q _]. rewrite forallb_forall in Q.
  destruct (zero_own_facts _ _ _ Z) as (ZC & ZV & ZW).
  destruct (take_facs_get _ _ _ _ F) as [FA FB].
  assert (KO : known T others = true).
  { apply known_all. intros v V. apply (known_in T all); auto. unfold others in V.
    apply in_app_iff in V as [V|V]; [apply mem_in, Q, in_or_app; auto|].
    unfold rest in V. now apply filter_In in V. }
  assert (SC : forall k v, In k gs -> In v (scope k) -> In v (s ++ others)).
  { intros k v G V. assert (I : In v all) by (apply unique_in, in_flat_map; eauto).
    unfold others. rewrite !in_app_iff. destruct (mem v s) eqn:M; [left; now apply mem_in|].
    destruct (mem v own) eqn:O; [right; left; now apply mem_in|]. right. right. apply filter_In.
    split; auto. now rewrite M, O. }
  assert (AL : forall x, alive T' x <-> alive T x).
  { intros x. split; intros A v p G.
    - destruct (ZW _ _ G) as [q E]. destruct (ZV _ _ E) as (p' & G' & E1 & E2 & _).
      rewrite G in G'. injection G' as <-. destruct (A v q E) as [B [c D]].
      split; [congruence|]. specialize (E2 (x v)). rewrite D in E2.
      destruct (nth_error (snd p) (x v)) as [[b e]|]; [|easy]. simpl in E2. injection E2 as <-. eauto.
    - destruct (ZV _ _ G) as (q & G' & E1 & E2 & _). destruct (A v q G') as [B [c D]].
      split; [congruence|]. specialize (E2 (x v)). rewrite D in E2.
      destruct (nth_error (snd p) (x v)) as [[b e]|]; [|easy]. simpl in E2. injection E2 as ->. eauto. }
  assert (FG : forall x, alive T x -> fval x g = least_sum T gs own s others [x s0; x s1]).
  { intros x A. unfold fval, g. cbn [scope tab moved map s]. unfold t.
    rewrite entry_tabulate.
    - simpl msum. rewrite !nth_zero. generalize (least_sum T gs own s others [x s0; x s1]).
      intros c; destruct c; simpl; auto. f_equal. lia.
    - destruct (A _ _ (var_get _ _ _ L0)) as [_ [c0 E0]].
      destruct (A _ _ (var_get _ _ _ L1)) as [_ [c1 E1]]. cbn [snd] in *.
      repeat constructor; apply nth_error_Some; congruence. }
  intros [N I]. split.
  - intros x A. apply AL in A. destruct (N x A) as [NU NFx]. split.
    + intros v p G. destruct (ZV _ _ G) as (q & G' & E1 & E2 & [-> |E3]); [eauto|].
      destruct (A _ _ G') as [B [c D]]. specialize (E2 (x v)). rewrite D in E2.
      unfold uval. rewrite <- E1, B. destruct (nth_error (snd p) (x v)) as [[b e]|] eqn:W; [|easy].
      rewrite (E3 _ _ _ W). simpl. lia.
    + intros f k G. unfold T' in G. cbn [facs] in G. destruct (Pos.eq_dec f (nf T)) as [->|NE].
      2:{ rewrite get_set_other in G by auto. eauto. }
      rewrite get_set_same in G. injection G as <-. rewrite FG by auto.
      unfold least_sum. apply minover_glb. intros r R. cbv zeta.
      set (e := env (s ++ others) ([x s0; x s1] ++ r)).
      set (y := fun u => if mem u (s ++ others) then e u else x u).
      assert (EC : forall u, In u (s ++ others) -> In (e u) (live T u)).
      { intros u U. unfold e. apply env_choice; auto. rewrite map_app.
        apply Forall2_app; auto. repeat constructor; eapply alive_in; eauto. }
      assert (Y : alive T y).
      { intros v p G. destruct (A _ _ G) as [B D]. split; auto. unfold y.
        destruct (mem v (s ++ others)) eqn:M; auto. apply mem_in in M. apply EC in M.
        destruct p as [w l]. cbn [fst snd] in *. subst w.
        apply (live_in T v l) in M; auto. unfold var. now rewrite G, Pos.eqb_refl. }
      destruct (N y Y) as [NY MY].
      assert (S1 : le (Fin 0) (sum (map (fval e) gs))).
      { apply sum_nonneg. intros k G. destruct (FB _ G) as [h Hh].
        rewrite (fval_agree e y k); [eauto|]. intros v V. unfold y.
        now rewrite (proj2 (mem_in _ _) (SC _ _ G V)). }
      assert (S2 : le (Fin 0) (sum (map (fun v => lcost T v (e v)) own))).
      { apply sum_nonneg. intros v V.
        assert (IA : In v all) by (apply mem_in, Q, in_or_app; auto).
        destruct (known_in _ _ _ K IA) as [l L].
        replace (e v) with (y v); [rewrite (lcost_uval _ _ _ _ L); eapply NY, var_get, L|].
        unfold y. rewrite (proj2 (mem_in v (s ++ others))); auto.
        unfold others. rewrite !in_app_iff. auto. }
      revert S1 S2. generalize (sum (map (fval e) gs)), (sum (map (fun v => lcost T v (e v)) own)).
      intros c d. destruct c, d; simpl; auto; lia.
  - intros x Px. destruct (I x Px) as [H|[A H]]; auto. right. rewrite AL. split; auto.
    eapply le_trans; [|apply H]. unfold T' at 1. cbn [lower]. apply plus_le.
    unfold tcost, T'. cbn [vars facs]. rewrite total_set.
    assert (NG := total_get (fval x) (nf T) fs). rewrite NF in NG. unfold one in NG at 1.
    rewrite plus_0 in NG. rewrite <- NG. unfold one. rewrite (ZC x A), (take_facs_total x _ _ _ _ F).
    assert (B : le (fval x g)
      (plus (sum (map (fval x) gs)) (sum (map (fun v => lcost T v (x v)) own)))).
    { rewrite FG by auto. unfold least_sum. eapply le_trans.
      - apply (minover_le _ _ (map x others)). now apply alive_choices.
      - cbv zeta. change ([x s0; x s1] ++ map x others) with (map x s ++ map x others).
        rewrite <- map_app.
        assert (EV : forall v, In v (s ++ others) -> env (s ++ others) (map x (s ++ others)) v = x v)
          by (intros; now apply env_map).
        apply plus_mono; apply sum_mono.
        + intros k G. rewrite (fval_agree _ x k); auto. intros v V. eapply EV, SC; eauto.
        + intros v V. rewrite EV; auto. unfold others. rewrite !in_app_iff. auto. }
    revert B. generalize (sum (map (fval x) gs)), (sum (map (fun v => lcost T v (x v)) own)).
    intros c d. destruct c, d; costs; intros; simpl in *; try easy; try lia.
Qed.

(** ** Decisions *)

Record decision := Decision { dvar : positive; dkind : Z; dlabel : Z }.

(** Kind 0 is =, 1 is ≠, 2 is ≤, 3 is >. *)
Definition allows (d : decision) (b : nat) : bool :=
  xorb (if dkind d <? 2 then Z.of_nat b =? dlabel d else Z.of_nat b <=? dlabel d) (Z.odd (dkind d)).

Definition negated (d : decision) : decision := Decision (dvar d) (Z.lxor (dkind d) 1) (dlabel d).

Definition sat (x : labelling) (d : decision) : Prop := allows d (x (dvar d)) = true.
Definition sats (x : labelling) (ds : list decision) : Prop := Forall (sat x) ds.

Definition valid (d : decision) : bool := (0 <=? dkind d) && (dkind d <? 4).

Lemma negated_sat d x : valid d = true -> ~ sat x d -> sat x (negated d).
Proof.
  unfold valid, sat, allows, negated. destruct d as [v k a]. cbn [dvar dkind dlabel]. intros V.
  assert (K : k = 0 \/ k = 1 \/ k = 2 \/ k = 3) by lia.
  destruct K as [->|[->|[->| ->]]]; simpl;
    destruct (Z.of_nat (x v) =? a), (Z.of_nat (x v) <=? a); simpl; congruence.
Qed.

Fixpoint restrict_list (d : decision) (i : nat) (l : labels) : labels :=
  match l with
  | [] => []
  | (b, c) :: rest => (b && allows d i, c) :: restrict_list d (S i) rest
  end.

Lemma restrict_nth d l : forall i k,
  nth_error (restrict_list d i l) k =
  option_map (fun q => (fst q && allows d (i + k), snd q)) (nth_error l k).
Proof.
  induction l as [|[b c] l IH]; intros i [|k]; simpl; auto.
  - now rewrite Nat.add_0_r.
  - rewrite IH. now replace (i + S k)%nat with (S i + k)%nat by lia.
Qed.

Definition restrict (d : decision) (T : st) : option st :=
  do l <- var T (dvar d);
  let l' := restrict_list d 0 l in
  let empty := if existsb fst l' then dead T else Some (dvar d) in
  Some (St (set (dvar d) (Some (dvar d, l')) (vars T)) (facs T) (nf T) (words T) (nw T) (lower T) empty).

Lemma restrict_inv C up P d T T' :
  restrict d T = Some T' -> Inv C up P T -> Inv C up (fun x => P x /\ sat x d) T'.
Proof.
  unfold restrict. destruct (var T (dvar d)) as [l|] eqn:L; [|easy]. intros H. apply some_inj in H.
  subst T'. apply var_get in L. set (v := dvar d) in *. set (l' := restrict_list d 0 l).
  set (T' := St _ _ _ _ _ _ _).
  assert (U : forall x, uval x (v, l') = uval x (v, l)).
  { intros x. unfold uval, l'. cbn [fst snd]. rewrite restrict_nth.
    destruct (nth_error l (x v)) as [[b c]|]; auto. }
  assert (TC : forall x, tcost T' x = tcost T x).
  { intros x. unfold tcost, T'. nodes. rewrite total_set, (total_at _ _ _ _ L). unfold one.
    now rewrite U. }
  assert (A1 : forall x, alive T' x -> alive T x).
  { intros x A u p G. destruct (Pos.eq_dec u v) as [->|N].
    - rewrite L in G. injection G as <-. split; auto.
      destruct (A v (v, l')) as [_ [c E]]; [apply get_set_same|]. cbn [snd] in *.
      unfold l' in E. rewrite restrict_nth in E. destruct (nth_error l (x v)) as [[b e]|]; [|easy].
      simpl in E. injection E as E _. apply andb_true_iff in E as [-> _]. eauto.
    - apply A. unfold T'. nodes. now rewrite get_set_other. }
  assert (A2 : forall x, alive T x -> sat x d -> alive T' x).
  { intros x A S u p G. unfold T' in G. cbn [vars] in G. destruct (Pos.eq_dec u v) as [->|N].
    - rewrite get_set_same in G. injection G as <-. split; auto. cbn [snd]. unfold l'.
      rewrite restrict_nth. destruct (A _ _ L) as [_ [c E]]. cbn [snd] in E. rewrite E. simpl.
      unfold sat in S. fold v in S. rewrite S. eauto.
    - rewrite get_set_other in G by auto. auto. }
  intros [N I]. split.
  - intros x A. apply A1 in A. destruct (N x A) as [NU NF]. split; auto.
    intros u p G. unfold T' in G. cbn [vars] in G. destruct (Pos.eq_dec u v) as [->|Q].
    + rewrite get_set_same in G. injection G as <-. rewrite U. eapply NU, L.
    + rewrite get_set_other in G by auto. eapply NU, G.
  - intros x [Px S]. destruct (I x Px) as [H|[A H]]; auto. right. split; auto.
    rewrite TC. auto.
Qed.
