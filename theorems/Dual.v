(** DUAL without clusters: λ moves costs from the factors to their variables, and, for factors of
    three or more variables, between the factor and one table for each of its axes. Whatever λ is,
    the sum of the smallest entries is a lower bound. *)

Require Import ZArith List Lia Bool.
Require Import Statement Costs Reduce Presolve Load Rounding.
Import ListNotations.
Local Open Scope Z_scope.

(** ** Entries of labels that cost +∞ are forbidden in all tables *)

Definition finite_row (t : table) : bool := match entry t [] with Fin _ => true | Inf => false end.

Fixpoint mask (rows : list (list bool)) (t : table) : table :=
  match rows, t with
  | r :: rest, Row l => Row (map (fun p : bool * table => if fst p then mask rest (snd p) else Row []) (combine r l))
  | _, _ => t
  end.

Definition rows_of (t : trie factor) (scope : list positive) : option (list (list bool)) :=
  every (fun v => do l <- row t v; Some (map finite_row l)) scope.

Definition mask_cell (t : trie factor) (c : factor) : factor :=
  match rows_of t (fst c) with
  | Some rows => (fst c, mask rows (snd c))
  | None => c
  end.

Lemma mask_entry t x d scope : tot x t = Fin d -> forall rows tab, rows_of t scope = Some rows ->
  entry (mask rows tab) (map x scope) = entry tab (map x scope).
Proof.
  intros T. induction scope as [|v scope IH]; intros rows tab H.
  - injection H as <-. auto.
  - unfold rows_of in H. cbn [every] in H. destruct (row t v) as [l|] eqn:L; [|easy].
    fold (rows_of t scope) in H. destruct (rows_of t scope) as [rs|]; [|easy].
    apply some_inj in H. subst rows. destruct tab as [c|k]; [auto|]. cbn [mask map].
    assert (F : nth_error (map finite_row l) (x v) = Some true).
    { rewrite nth_error_map. assert (V : value ([v], Row l) x <> Inf).
      { intros V. rewrite (tot_inf x t _ _ (row_get _ _ _ L) V) in T. easy. }
      unfold value in V. simpl in V. destruct (nth_error l (x v)) as [u|]; [|easy]. simpl.
      unfold finite_row. simpl. destruct u as [[z|]|]; easy. }
    simpl. rewrite nth_error_map, nth_error_combine, F.
    destruct (nth_error k (x v)) as [u|]; simpl; auto.
Qed.

Lemma mask_tot t x : le (tot x (map_trie (mask_cell t) t)) (tot x t).
Proof.
  destruct (tot x t) as [d|] eqn:T; [|auto].
  assert (H : forall u, tot x (map_trie (mask_cell t) u) = tot x u).
  { intros u. unfold tot. induction u as [|l IHl o r IHr]; simpl; auto. rewrite IHl, IHr.
    destruct o as [c|]; simpl; auto. f_equal. f_equal. unfold mask_cell.
    destruct (rows_of t (fst c)) as [rows|] eqn:E; auto. unfold value. cbn [fst snd].
    eapply mask_entry; eauto. }
  rewrite H, T. auto.
Qed.

(** ** One edge between a larger factor and one of its variables *)

Definition amount (t : table) (labels : list nat) : Z :=
  match entry t labels with Fin z => z | Inf => 0 end.

(** [mu] has an amount for each entry of the factor, [lam] one for each label of the variable. *)
Definition member (R : red) (f : positive) (sc : list positive) (v : positive)
  (mu : table) (lam : list Z) : option red :=
  do (s, t) <- get (xI f) (cells R);
  do l <- row (cells R) v;
  ensure (mem v s && Nat.eqb (length lam) (length l));
  do c1 <- over (cells R) s (fun e => minus (entry t (map e s)) (amount mu (map e sc)));
  do c2 <- over (cells R) s (fun e =>
    match entry t (map e s) with Fin _ => Fin (amount mu (map e sc) + nth (e v) lam 0) | Inf => Inf end);
  match least (snd c2) with
  | Inf => Some (close R)
  | Fin d =>
      let own_ := ([v], plust (Row l) (Row (map (fun z => Val (Fin (- z))) lam))) in
      Some (raise d (put (set (xO v) (Some own_) (set (xI f) (Some c1) (cells R))) R))
  end.

Lemma member_refines R f sc v mu lam R' : member R f sc v mu lam = Some R' -> refines R R'.
Proof.
  unfold member. destruct (get (xI f) (cells R)) as [[s t]|] eqn:F; [|easy].
  destruct (row (cells R) v) as [l|] eqn:L; [|easy].
  destruct (mem v s) eqn:M; [|easy]. destruct (Nat.eqb_spec (length lam) (length l)) as [EL|]; [|easy].
  cbn [andb]. destruct (over (cells R) s _) as [c1|] eqn:O1; [|easy].
  match goal with |- (do _ <- ?a; _) = _ -> _ => destruct a as [c2|] eqn:O2; [|easy] end.
  intros H. assert (C : cut R' = cut R)
    by (destruct (least (snd c2)); apply some_inj in H; subst R'; auto).
  apply refines_same; auto. intros x. unfold val at 2. destruct (closed R) eqn:CL; [auto|].
  destruct (tot x (cells R)) as [d0|] eqn:T; [|simpl; auto].
  apply (over_value _ _ _ _ x) in O1 as [O1|O1]; [congruence|].
  apply (over_value _ _ _ _ x) in O2 as [O2|O2]; [congruence|].
  set (e := env s (map x s)) in *.
  assert (E : map e s = map x s) by (apply map_ext_in; intros; now apply env_map).
  assert (EV : e v = x v) by (apply env_map; now apply mem_in). rewrite E, ?EV in *.
  destruct (row_range _ _ _ x L) as [|B]; [congruence|].
  assert (G := row_get _ _ _ L).
  unfold tot in T. rewrite (total_at _ _ _ _ F) in T. unfold value at 1 in T. cbn [fst snd] in T.
  assert (G' : get (xO v) (set (xI f) None (cells R)) = Some ([v], Row l)) by now rewrite get_set_other.
  rewrite (total_at _ _ _ _ G') in T.
  assert (LE := least_le (snd c2) (map x (fst c2))). fold (value c2 x) in LE. rewrite O2 in LE.
  destruct (entry t (map x s)) as [z|]; [|easy].
  destruct (least (snd c2)) as [d|]; [|easy]. apply some_inj in H. subst R'. unfold val. fields. rewrite CL.
  assert (G2 : get (xO v) (set (xI f) (Some c1) (cells R)) = Some ([v], Row l)) by now rewrite get_set_other.
  rewrite (tot_replace _ _ _ _ _ _ G2). unfold tot.
  rewrite (total_set _ (xI f) (Some c1)). unfold one. rewrite O1.
  rewrite (total_at _ _ _ _ G').
  replace (value ([v], Row (map (fun z0 => Val (Fin (- z0))) lam)) x) with (Fin (- nth (x v) lam 0)).
  - revert T LE. generalize (value ([v], Row l) x).
    generalize (total (fun c => value c x) (set (xO v) None (set (xI f) None (cells R)))).
    intros a b. destruct a, b; simpl; try easy. intros [= <-]. lia.
  - unfold value. simpl. rewrite nth_error_map.
    destruct (nth_error lam (x v)) as [q|] eqn:Q; [|apply nth_error_None in Q; lia].
    simpl. now rewrite (nth_error_nth _ _ _ Q).
Qed.

(** ** All edges *)

Fixpoint build (ds : list nat) (l : list Z) : table * list Z :=
  match ds with
  | [] => match l with z :: r => (Val (Fin z), r) | [] => (Val Inf, []) end
  | d :: ds' =>
      let '(rows, r) := (fix go n l := match n with
                                       | O => ([], l)
                                       | S k => let '(t, r) := build ds' l in
                                                let '(ts, q) := go k r in (t :: ts, q)
                                       end) d l in (Row rows, r)
  end.

Definition size (ds : list nat) : nat := fold_right Nat.mul 1%nat ds.

(** The factor of the remaining model with some scope. *)
Definition at_scope (R : red) (sc : list positive) : option positive :=
  let s := fold_right insert [] sc in
  do v <- hd_error s;
  do (f, _) <- same_scope s (ids R v) (cells R);
  Some f.

Definition pair_edge (R : red) (f : positive) (i j : positive) (l k : list Z) : option red :=
  do (s, t) <- get (xI f) (cells R);
  do a <- axis_of i s; do b <- axis_of j s;
  do t1 <- shift1 (cells R) f a (map Z.opp l);
  do t2 <- shift1 t1 f b (map Z.opp k);
  Some (put t2 R).

Definition cutoff (n : nat) (l : list Z) : option (list Z * list Z) :=
  ensure (Nat.leb n (length l)); Some (firstn n l, skipn n l).

(** The scopes of the model's factors, and for each edge one of them. *)
Fixpoint all_edges (R : red) (scopes : trie (list positive)) (es : list (Z * option Z))
  (lam : list Z) : option red :=
  match es with
  | [] => match lam with [] => Some R | _ => None end
  | (z, axis) :: rest =>
      do k <- number z;
      do sc <- get k scopes;
      do f <- at_scope R sc;
      do ds <- shape (cells R) sc;
      match axis, sc, ds with
      | None, [i; j], [d0; d1] =>
          do (l, r) <- cutoff d0 lam;
          do (q, r') <- cutoff d1 r;
          do R' <- pair_edge R f i j l q;
          all_edges R' scopes rest r'
      | Some a, _, _ =>
          do a <- small a;
          do v <- nth_error sc a;
          do d <- nth_error ds a;
          do (l, r) <- cutoff (size ds) lam;
          do (q, r') <- cutoff d r;
          do R' <- member R f sc v (fst (build ds l)) q;
          all_edges R' scopes rest r'
      | _, _, _ => None
      end
  end.

Lemma pair_edge_refines R f i j l k R' : pair_edge R f i j l k = Some R' -> refines R R'.
Proof.
  unfold pair_edge. destruct (get (xI f) (cells R)) as [[s t]|]; [|easy].
  destruct (axis_of i s) as [a|]; [|easy]. destruct (axis_of j s) as [b|]; [|easy].
  destruct (shift1 (cells R) f a (map Z.opp l)) as [t1|] eqn:S1; [|easy].
  destruct (shift1 t1 f b (map Z.opp k)) as [t2|] eqn:S2; [|easy]. got.
  apply refines_same; auto. intros x. unfold val. fields.
  rewrite (shift1_tot _ _ _ _ _ x S2), (shift1_tot _ _ _ _ _ x S1). auto.
Qed.

Lemma all_edges_refines scopes es : forall R lam R', all_edges R scopes es lam = Some R' -> refines R R'.
Proof.
  induction es as [|[z axis] es IH]; intros R lam R' H; cbn [all_edges] in H.
  - destruct lam; [|easy]. injection H as <-. apply refines_refl.
  - destruct (number z) as [k|]; [|easy]. destruct (get k scopes) as [sc|]; [|easy].
    destruct (at_scope R sc) as [f|]; [|easy]. destruct (shape (cells R) sc) as [ds|]; [|easy].
    destruct axis as [a|].
    + destruct (small a) as [b|]; [|easy]. destruct (nth_error sc b) as [v|]; [|easy].
      destruct (nth_error ds b) as [d|]; [|easy].
      destruct (cutoff (size ds) lam) as [[l r]|]; [|easy].
      destruct (cutoff d r) as [[q r']|]; [|easy].
      destruct (member R f sc v _ q) as [Q|] eqn:M; [|easy].
      eapply refines_trans; [eapply member_refines, M|eapply IH, H].
    + destruct sc as [|i [|j [|]]]; try easy. destruct ds as [|d0 [|d1 [|]]]; try easy.
      destruct (cutoff d0 lam) as [[l r]|]; [|easy]. destruct (cutoff d1 r) as [[q r']|]; [|easy].
      destruct (pair_edge R f i j l q) as [Q|] eqn:M; [|easy].
      eapply refines_trans; [eapply pair_edge_refines, M|eapply IH, H].
Qed.

(** Costs and λ in multiples of the smallest power of two that occurs. *)
Definition finest (e : Z) (ds : list (Z * Z)) : Z :=
  fold_left (fun s d => if fst d =? 0 then s else Z.min s (snd d)) ds e.

Definition reach (w : Z -> Z) (m : model) : Z :=
  fold_right Z.add 0 (map (fun f =>
    let u := mapt (lift w) (snd f) in
    match least u with Fin l => Z.max 0 (highest u - l) | Inf => 0 end) (blocks m)).

Definition dual (m : model) (e : Z) (edges : list (Z * option Z)) (bits : list Z) : option (Z * (Z * Z)) :=
  do ds <- every double bits;
  let s := finest e ds in
  let n := 2 ^ (e - s) in
  let lam := map (fun d => if fst d =? 0 then 0 else fst d * 2 ^ (snd d - s)) ds in
  let w := fun z => z * n in
  let most := Z.max 0 (reach w m) in
  ensure ((0 <? n));
  do R <- load_sums w most m;
  let scopes := fst (fold_left (fun p f => (set (snd p) (Some (fst f)) (fst p), Pos.succ (snd p)))
                       (factors m) (Leaf, xH)) in
  do R1 <- all_edges (put (map_trie (mask_cell (cells R)) (cells R)) R) scopes edges lam;
  let R2 := settle (put (map_trie (mask_cell (cells R1)) (cells R1)) R1) in
  let b := if closed R2 then cut R2 else Z.min (cut R2) (base R2) in
  Some (constant m - (- b) / n, dplus (constant m, e) (b, s)).

Lemma mask_refines R : refines R (put (map_trie (mask_cell (cells R)) (cells R)) R).
Proof.
  apply refines_same; auto. intros x. unfold val. fields. destruct (closed R); auto.
  apply plus_le, mask_tot.
Qed.

Lemma scaled_sum n (bs : list factor) x e : sum (map (fun f => value f x) bs) = Fin e ->
  sum (map (fun f => units (fun z => z * n) f x) bs) = Fin (e * n).
Proof.
  revert e. induction bs as [|f bs IH]; intros e H; [simpl in *; injection H as <-; auto|].
  cbn [map] in *. rewrite sum_cons in *. destruct (value f x) as [a|] eqn:A; [|easy].
  destruct (sum (map (fun f => value f x) bs)) as [b|]; [|easy]. injection H as <-.
  rewrite (IH b eq_refl). unfold units. rewrite A. simpl. f_equal. lia.
Qed.

Lemma dual_sound m e edges bits b d : dual m e edges bits = Some (b, d) -> lower_bound m b.
Proof.
  unfold dual. destruct (every double bits) as [ds|]; [|easy].
  set (n := 2 ^ (e - finest e ds)). set (w := fun z => z * n). set (most := Z.max 0 (reach w m)).
  destruct (Z.ltb_spec 0 n) as [N|]; [|easy].
  destruct (load_sums w most m) as [R|] eqn:L; [|easy]. destruct (all_edges _ _ _ _) as [R1|] eqn:A; [|easy].
  cbv zeta. set (R3 := put _ R1). assert (Q := settle_val R3). set (R2 := settle R3) in *. intros H. injection H as <- _.
  assert (F : refines R R2).
  { eapply refines_trans; [apply mask_refines|].
    eapply refines_trans; [eapply all_edges_refines, A|].
    eapply refines_trans; [apply mask_refines|]. apply refines_same; [apply Q|].
    intros x. rewrite (proj1 (proj2 Q)). auto. }
  assert (M : 0 <= most) by (unfold most; lia).
  assert (S := load_sums_spec w most M m R L). destruct F as [C F].
  destruct Q as (_ & _ & Q). intros x. unfold energy.
  destruct (sum (map (fun f => value f x) (blocks m))) as [z|] eqn:E; [|exact I]. simpl.
  assert (T : total_units w m x = Fin (z * n)) by now apply scaled_sum.
  destruct (S x) as [S1 _]. rewrite T in S1. destruct (F x) as [x' X].
  assert (B : (if closed R2 then cut R2 else Z.min (cut R2) (base R2)) <= z * n).
  { assert (V : le (Fin (if closed R2 then cut R2 else Z.min (cut R2) (base R2)))
                  (cmin (Fin (cut R2)) (val R2 x'))).
    { unfold val. destruct (closed R2) eqn:K; [simpl; lia|]. destruct Q as [Q|Q]; [easy|].
      assert (P : le (Fin 0) (tot x' (cells R2))) by (apply total_nonneg; intros; eapply Q; eauto).
      destruct (tot x' (cells R2)); simpl in *; lia. }
    rewrite C in *. destruct (val R2 x'), (val R x); simpl in *; lia. }
  set (c := if closed R2 then cut R2 else Z.min (cut R2) (base R2)) in *.
  assert (- z <= - c / n); [|lia]. apply Z.div_le_lower_bound; lia.
Qed.
