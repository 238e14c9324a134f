(** COMPONENT and END: a search over some variables and factors of the remaining model. *)

Require Import ZArith List Lia Bool.
Require Import Statement Costs Reduce Tree Search.
Import ListNotations.
Local Open Scope Z_scope.

(** The cells that are left, the state of the search's root, and the largest finite cost in it. *)
Record part := Part { left : trie factor; node : st; high : Z }.

Definition load_var (p : part) (v : positive) : option part :=
  do l <- row (left p) v;
  match get v (vars (node p)) with
  | Some _ => None
  | None =>
      let T := node p in
      let l' := map (fun e => (true, entry e [])) l in
      Some (Part (set (xO v) None (left p)) (with_vars (set v (Some (v, l')) (vars T)) T)
             (high p + highest (Row l)))
  end.

Definition sizes (T : st) (vs : list positive) : option (list nat) :=
  every (fun v => do l <- var T v; Some (length l)) vs.

Definition axis_words (f : positive) (ds : list nat) (p : trie (positive * nat * nat) * positive) :=
  fold_left (fun p q => add_words f (fst q) (snd q) p) (combine (seq 0 (length ds)) ds) p.

Definition load_fac (p : part) (f : positive) : option part :=
  let T := node p in
  do c <- get (xI f) (left p);
  do ds <- sizes T (fst c);
  match get (nf T) (facs T) with
  | Some _ => None
  | None =>
      let g := Fac (fst c) (snd c) (map (repeat 0) ds) in
      let '(ws, n) := axis_words (nf T) ds (words T, nw T) in
      Some (Part (set (xI f) None (left p))
             (St (vars T) (set (nf T) (Some g) (facs T)) (Pos.succ (nf T)) ws n (lower T) (dead T))
             (high p + highest (snd c)))
  end.

Fixpoint loads (f : part -> positive -> option part) (p : part) (l : list positive) : option part :=
  match l with
  | [] => Some p
  | a :: rest => do p' <- f p a; loads f p' rest
  end.

(** The root has exactly the costs that were taken. *)
Definition exact (t : trie factor) (p : part) : Prop :=
  lower (node p) = 0 /\ 0 <= high p /\
  (forall x, plus (tcost (node p) x) (tot x (left p)) = tot x t) /\
  (forall x c, tcost (node p) x = Fin c -> c <= high p) /\
  nonneg (left p) /\
  (forall v q, get v (vars (node p)) = Some q -> fst q = v /\
     Forall (fun e => fst e = true) (snd q) /\ forall x, le (Fin 0) (uval x q)) /\
  (forall f g x, get f (facs (node p)) = Some g -> le (Fin 0) (fval x g)).

Lemma highest_nonneg t : 0 <= highest t.
Proof.
  destruct t as [[c|]|rows]; simpl; try lia. induction rows; simpl; lia.
Qed.

Lemma load_var_exact t p v p' : load_var p v = Some p' -> exact t p -> exact t p'.
Proof.
  unfold load_var. destruct (row (left p) v) as [l|] eqn:L; [|easy].
  destruct (get v (vars (node p))) eqn:G; [easy|]. intros H (E1 & E2 & E3 & E4 & E5 & E6 & E7).
  apply some_inj in H. subst p'. apply row_get in L.
  set (l' := map (fun e => (true, entry e [])) l).
  assert (U : forall x, uval x (v, l') = value ([v], Row l) x).
  { intros x. unfold uval, value, l'. cbn [fst snd map]. rewrite nth_error_map. simpl.
    now destruct (nth_error l (x v)). }
  assert (TC : forall x, tcost (with_vars (set v (Some (v, l')) (vars (node p))) (node p)) x =
                         plus (value ([v], Row l) x) (tcost (node p) x)).
  { intros x. unfold tcost. nodes. rewrite total_set.
    assert (N := total_get (uval x) v (vars (node p))). rewrite G in N. unfold one in N.
    rewrite plus_0 in N. rewrite <- N. unfold one. rewrite U. symmetry. apply plus_assoc. }
  assert (HN := highest_nonneg (Row l)).
  split; [auto|split; [simpl in *; lia|split; [|split; [|split; [|split]]]]]; cbn [left node high].
  - intros x. rewrite TC, <- (E3 x). unfold tot. rewrite (total_at _ _ _ _ L).
    rewrite <- plus_assoc. apply plus_swap.
  - intros x c. rewrite TC. unfold value. cbn [fst snd].
    destruct (entry (Row l) (map x [v])) as [d|] eqn:D; [|easy].
    destruct (tcost (node p) x) as [e|] eqn:T; [|easy]. intros H. simpl in H.
    assert (d + e = c) by congruence.
    apply highest_le in D. apply E4 in T. lia.
  - intros q c x K. apply set_none_get in K. eapply E5, K.
  - intros u q K. cbn [vars with_vars] in K. destruct (Pos.eq_dec u v) as [->|N].
    + rewrite get_set_same in K. apply some_inj in K. subst q. split; [auto|split].
      * cbn [snd]. unfold l'. apply Forall_forall. intros e I. apply in_map_iff in I as (a & <- & _).
        auto.
      * intros x. rewrite U. eapply E5, L.
    + rewrite get_set_other in K by auto. auto.
  - exact E7.
Qed.

Lemma msum_repeat ds idx : msum (map (repeat 0) ds) idx = 0.
Proof.
  revert idx. induction ds as [|d ds IH]; intros [|a idx]; simpl; auto. rewrite IH.
  replace (nth a (repeat 0 d) 0) with 0; auto. symmetry. apply nth_repeat.
Qed.

Lemma load_fac_exact t p f p' : load_fac p f = Some p' -> exact t p -> exact t p'.
Proof.
  unfold load_fac. destruct (get (xI f) (left p)) as [c|] eqn:L; [|easy].
  destruct (sizes (node p) (fst c)) as [ds|]; [|easy].
  destruct (get (nf (node p)) (facs (node p))) eqn:G; [easy|].
  destruct (axis_words _ _ _) as [ws n]. intros H (E1 & E2 & E3 & E4 & E5 & E6 & E7).
  apply some_inj in H. subst p'. set (g := Fac _ _ _).
  assert (F : forall x, fval x g = value c x).
  { intros x. unfold fval, g, value. cbn [scope tab moved]. rewrite msum_repeat.
    destruct (entry (snd c) (map x (fst c))); simpl; auto. f_equal. lia. }
  set (T' := St _ _ _ _ _ _ _).
  assert (TC : forall x, tcost T' x = plus (value c x) (tcost (node p) x)).
  { intros x. unfold tcost, T'. nodes. rewrite total_set.
    assert (N := total_get (fval x) (nf (node p)) (facs (node p))). rewrite G in N. unfold one in N.
    rewrite plus_0 in N. rewrite <- N. unfold one. rewrite F. apply plus_swap. }
  assert (HN := highest_nonneg (snd c)).
  split; [auto|split; [simpl in *; lia|split; [|split; [|split; [|split]]]]]; cbn [left node high].
  - intros x. rewrite TC, <- (E3 x). unfold tot. rewrite (total_at _ _ _ _ L).
    rewrite <- plus_assoc. apply plus_swap.
  - intros x d. rewrite TC. unfold value. destruct (entry (snd c) (map x (fst c))) as [e|] eqn:D; [|easy].
    destruct (tcost (node p) x) as [h|] eqn:T; [|easy]. intros H. simpl in H.
    assert (e + h = d) by congruence.
    apply highest_le in D. apply E4 in T. lia.
  - intros q d x K. apply set_none_get in K. eapply E5, K.
  - exact E6.
  - intros h k x K. unfold T' in K. cbn [facs] in K. destruct (Pos.eq_dec h (nf (node p))) as [->|N].
    + rewrite get_set_same in K. apply some_inj in K. subst k. rewrite F. eapply E5, L.
    + rewrite get_set_other in K by auto. eauto.
Qed.

Lemma loads_exact f t l : (forall p a p', f p a = Some p' -> exact t p -> exact t p') ->
  forall p p', loads f p l = Some p' -> exact t p -> exact t p'.
Proof.
  intros F. induction l as [|a l IH]; simpl; intros p p' H E; [now injection H as <-|].
  destruct (f p a) as [q|] eqn:Q; [|easy]. eapply IH; eauto.
Qed.

Definition empty_state : st := St Leaf Leaf xH Leaf xH 0 None.

Lemma empty_exact t : nonneg t -> exact t (Part t empty_state 0).
Proof.
  intros N. split; [auto|split; [simpl; lia|split; [|split; [|split; [|split]]]]].
  - intros x. apply plus_0.
  - intros x c H. unfold tcost in H. simpl in H. injection H as <-. simpl. lia.
  - exact N.
  - intros v q K. destruct v; easy.
  - intros f g x K. destruct f; easy.
Qed.

(** The variables and labels of the component, in order. *)
Definition numbered {A} (l : list A) : trie A :=
  fst (fold_left (fun p a => (set (snd p) (Some a) (fst p), Pos.succ (snd p))) l (Leaf, xH)).

Definition all_marks (T : st) (vs : list positive) : list (positive * nat) :=
  flat_map (fun v => match var T v with
                     | Some l => map (fun a => (v, a)) (seq 0 (length l))
                     | None => []
                     end) vs.

Definition start (R : red) (vs fs : list positive) : option (part * search) :=
  ensure (match vs with [] => false | _ => true end);
  do p <- loads load_var (Part (cells R) empty_state 0) vs;
  do q <- loads load_fac p fs;
  let T := node q in
  Some (q, Search (numbered vs) (numbered (all_marks T vs)) T None
             (set xH (Some (0, [])) Leaf) xH half).

Lemma start_ok R vs fs p s : start R vs fs = Some (p, s) -> nonneg (cells R) ->
  exact (cells R) p /\ ok (tcost (node p)) s /\ forall x, le (Fin 0) (tcost (node p) x).
Proof.
  unfold start. destruct vs as [|v vs]; [easy|].
  destruct (loads load_var _ (v :: vs)) as [q|] eqn:Q; [|easy].
  destruct (loads load_fac q fs) as [r|] eqn:K; [|easy]. intros [= <- <-] N.
  assert (E : exact (cells R) r).
  { eapply loads_exact; [| |]; [apply load_fac_exact|apply K|].
    eapply loads_exact; [apply load_var_exact|apply Q|]. now apply empty_exact. }
  split; auto. destruct E as (E1 & E2 & E3 & E4 & E5 & E6 & E7).
  assert (P : forall x, le (Fin 0) (tcost (node r) x)).
  { intros x. unfold tcost. change (Fin 0) with (plus (Fin 0) (Fin 0)).
    apply plus_mono; apply total_nonneg; [intros u q' G; apply (proj2 (proj2 (E6 _ _ G)))|eauto]. }
  split; auto. split; [|split; [|split]].
  - split.
    + intros x A. split; [intros u q' G; apply (proj2 (proj2 (E6 _ _ G)))|eauto].
    + intros x _. cbn [root]. destruct (tcost (node r) x) as [c|] eqn:T; [|left; exact I].
      right. split; [|rewrite E1; simpl; lia].
      intros u [w l] G. destruct (E6 _ _ G) as (W & F & _). cbn [fst snd] in *. subst w. split; auto.
      assert (V : uval x (u, l) <> Inf).
      { intros V. unfold tcost in T. rewrite (total_at _ _ _ _ G), V in T. simpl in T. discriminate. }
      unfold uval in V. cbn [fst snd] in V. destruct (nth_error l (x u)) as [[b e]|] eqn:B; [|easy].
      rewrite Forall_forall in F. assert (H := F _ (nth_error_In _ _ B)). simpl in H. subst b. eauto.
  - intros k b q' G. simpl in G. destruct k; try (destruct k; easy). simpl in G. injection G as <- <-.
    intros x _. right. apply P.
  - easy.
  - intros x. right. left. exists xH, 0, []. split; [auto|constructor].
Qed.

(** END: the bound of the search is added, its variables are removed. *)
Definition ended (R : red) (p : part) (b : Z) : red :=
  let free (c : factor) := negb (existsb (fun v => match get v (vars (node p)) with Some _ => true | None => false end)
                        (fst c)) in
  Red (filter_trie free (left p)) (next R) (of R) (base R + b) (cut R) (closed R || (high p <? b)).

Lemma ended_refines R p b : exact (cells R) p -> (forall x, le (Fin b) (tcost (node p) x)) ->
  refines R (ended R p b).
Proof.
  intros (E1 & E2 & E3 & E4 & E5 & E6 & E7) B. apply refines_same; auto. intros x. unfold val. fields.
  cbn [ended closed base cells]. destruct (closed R); [auto|]. cbn [orb]. rewrite <- (E3 x).
  specialize (B x). specialize (E4 x). destruct (tcost (node p) x) as [c|]; [|rewrite plus_inf; auto].
  specialize (E4 c eq_refl). simpl in B. destruct (Z.ltb_spec (high p) b); [lia|].
  match goal with |- le (plus _ (tot x (filter_trie ?f _))) _ =>
    assert (F := total_filter (fun c => value c x) f (left p)) end.
  assert (L := F (fun q c G => E5 q c x G)). unfold tot. revert L.
  match goal with |- le ?a ?b -> _ => generalize a, b end.
  intros u w L. destruct u, w; simpl in *; auto; lia.
Qed.
