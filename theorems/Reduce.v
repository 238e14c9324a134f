(** Records before a search: the model that is left, and why each step keeps lower bounds valid. *)

Require Import ZArith List Lia Bool Mergesort Orders.
Require Import Statement Costs.
Import ListNotations.
Local Open Scope Z_scope.

Definition half : Z := 2 ^ 59.
Definition largest_move : Z := 2 ^ 57.
Definition largest_table : Z := 2 ^ 27.

(** The remaining model. The costs of variable v have the key v~0, factor f has the key f~1. [of]
    lists factors by variable; it only saves time: some may be missing or gone. *)
Record red := Red {
  cells : trie factor; next : positive; of : trie (list positive);
  base : Z; cut : Z; closed : bool }.

Definition put (t : trie factor) (R : red) : red :=
  Red t (next R) (of R) (base R) (cut R) (closed R).
Definition raise (d : Z) (R : red) : red :=
  Red (cells R) (next R) (of R) (base R + d) (cut R) (closed R).
Definition close (R : red) : red := Red (cells R) (next R) (of R) (base R) (cut R) true.

Lemma some_inj {A} (a b : A) : Some a = Some b -> a = b.
Proof. congruence. Qed.
Ltac got := let H := fresh "H" in intros H; apply some_inj in H; subst.
Ltac fields := cbn [cells next of base cut closed put raise close].

Definition tot (x : labelling) (t : trie factor) : cost := total (fun c => value c x) t.
Definition val (R : red) (x : labelling) : cost :=
  if closed R then Inf else plus (Fin (base R)) (tot x (cells R)).

(** A lower bound, up to the cut, on the new model is one on the old model. *)
Definition refines (R R' : red) : Prop :=
  cut R' = cut R /\ forall x, exists x', le (cmin (Fin (cut R)) (val R' x')) (val R x).

Lemma refines_refl R : refines R R.
Proof. split; auto. intros x. exists x. auto. Qed.

Lemma refines_trans R S T : refines R S -> refines S T -> refines R T.
Proof.
  intros [E1 H1] [E2 H2]. split; [congruence|]. intros x.
  destruct (H1 x) as [y Hy]. destruct (H2 y) as [z Hz]. exists z. rewrite E1 in Hz.
  split_cost (val R x); split_cost (val S y); split_cost (val T z); simpl in *; try easy; lia.
Qed.

Lemma refines_same R R' : cut R' = cut R -> (forall x, le (val R' x) (val R x)) -> refines R R'.
Proof.
  intros E H. split; auto. intros x. exists x. eapply le_trans; [apply cmin_r|apply H].
Qed.

(** ** Rows of costs, shapes *)

Definition row (t : trie factor) (v : positive) : option (list table) :=
  match get (xO v) t with
  | Some ([u], Row l) => if Pos.eqb u v then Some l else None
  | _ => None
  end.

Lemma row_get t v l : row t v = Some l -> get (xO v) t = Some ([v], Row l).
Proof.
  unfold row. destruct (get (xO v) t) as [[[|u [|]] [|k]]|]; try easy.
  destruct (Pos.eqb_spec u v); [|easy]. intros [= <-]. now subst.
Qed.

Lemma tot_inf x t p c : get p t = Some c -> value c x = Inf -> tot x t = Inf.
Proof. intros G V. unfold tot. rewrite (total_at _ _ _ _ G), V. auto. Qed.

Lemma row_range t v l x : row t v = Some l -> tot x t = Inf \/ (x v < length l)%nat.
Proof.
  intros H. destruct (Nat.lt_ge_cases (x v) (length l)) as [L|L]; auto. left.
  eapply tot_inf; [apply row_get, H|]. unfold value. simpl.
  now replace (nth_error l (x v)) with (@None table) by now symmetry; apply nth_error_None.
Qed.

Fixpoint shape (t : trie factor) (scope : list positive) : option (list nat) :=
  match scope with
  | [] => Some []
  | v :: rest => do l <- row t v; do ds <- shape t rest; Some (length l :: ds)
  end.

Definition fits (idx ds : list nat) := Forall2 (fun a d => (a < d)%nat) idx ds.

Lemma shape_fits t scope ds x : shape t scope = Some ds -> tot x t = Inf \/ fits (map x scope) ds.
Proof.
  revert ds. induction scope as [|v scope IH]; simpl; intros ds.
  - intros [= <-]. right. constructor.
  - destruct (row t v) as [l|] eqn:E; [|easy]. destruct (shape t scope) as [es|]; [|easy].
    intros [= <-]. destruct (row_range _ _ _ x E); auto. destruct (IH es eq_refl); auto.
    right. now constructor.
Qed.

Lemma fits_seq idx ds : fits idx ds -> Forall2 (fun a c => In a c) idx (map (seq 0) ds).
Proof.
  induction 1 as [|a d idx ds H _ IH]; simpl; constructor; auto. apply in_seq. lia.
Qed.

(** ** Numbers of a file *)

Definition number (z : Z) : option positive :=
  ensure (0 <=? z); Some (Z.to_pos (z + 1)).
Definition small (z : Z) : option nat :=
  ensure ((0 <=? z) && (z <? 2 ^ 24)); Some (Z.to_nat z).

Fixpoint every {A B} (f : A -> option B) (l : list A) : option (list B) :=
  match l with
  | [] => Some []
  | a :: l' => do b <- f a; do k <- every f l'; Some (b :: k)
  end.

Fixpoint pairs {A} (l : list A) : option (list (A * A)) :=
  match l with
  | [] => Some []
  | a :: b :: l' => do k <- pairs l'; Some ((a, b) :: k)
  | _ => None
  end.

(** ** Adding tables *)

Definition ids (R : red) (v : positive) : list positive :=
  match get v (of R) with Some l => rev l | None => [] end.

Definition listed (f : positive) (scope : list positive) (t : trie (list positive)) :=
  fold_right (fun v t => set v (Some (f :: match get v t with Some l => l | None => [] end)) t)
    t scope.

Fixpoint same_scope (scope : list positive) (fs : list positive) (t : trie factor) :=
  match fs with
  | [] => None
  | f :: rest =>
      match get (xI f) t with
      | Some (s, tab) =>
          if list_eq_dec Pos.eq_dec s scope then Some (f, tab) else same_scope scope rest t
      | None => same_scope scope rest t
      end
  end.

Lemma same_scope_get scope fs t f tab :
  same_scope scope fs t = Some (f, tab) -> get (xI f) t = Some (scope, tab).
Proof.
  induction fs as [|g fs IH]; simpl; [easy|].
  destruct (get (xI g) t) as [[s u]|] eqn:E; auto.
  destruct (list_eq_dec Pos.eq_dec s scope) as [->|]; auto. intros H. injection H as -> ->. auto.
Qed.

Definition add (c : factor) (R : red) : option red :=
  match fst c with
  | [] => Some (match entry (snd c) [] with Fin d => raise d R | Inf => close R end)
  | [v] =>
      do l <- row (cells R) v;
      Some (put (set (xO v) (Some ([v], plust (Row l) (snd c))) (cells R)) R)
  | v :: _ =>
      match same_scope (fst c) (ids R v) (cells R) with
      | Some (f, tab) =>
          Some (put (set (xI f) (Some (fst c, plust tab (snd c))) (cells R)) R)
      | None =>
          match get (xI (next R)) (cells R) with
          | Some _ => None
          | None =>
              Some (Red (set (xI (next R)) (Some c) (cells R)) (Pos.succ (next R))
                (listed (next R) (fst c) (of R)) (base R) (cut R) (closed R))
          end
      end
  end.

Lemma tot_replace x t p s tab u :
  get p t = Some (s, tab) ->
  tot x (set p (Some (s, plust tab u)) t) = plus (value (s, u) x) (tot x t).
Proof.
  intros G. unfold tot. rewrite total_set, (total_at _ _ _ _ G). simpl. unfold value. simpl.
  rewrite entry_plust. rewrite (plus_comm (entry tab _)). symmetry. apply plus_assoc.
Qed.

Lemma add_val c R R' :
  add c R = Some R' -> cut R' = cut R /\ forall x, val R' x = plus (value c x) (val R x).
Proof.
  unfold add. destruct c as [[|v [|w scope]] tab]; cbn [fst snd]; cbv beta iota.
  - destruct (entry tab []) as [d|] eqn:E; got; split; auto; intros x;
      change (value ([], tab) x) with (entry tab []); rewrite E; unfold val; simpl;
      destruct (closed R); simpl; auto.
    split_cost (tot x (cells R)); simpl; auto. f_equal. lia.
  - destruct (row (cells R) v) as [l|] eqn:E; [|easy]. got. split; auto. intros x.
    unfold val. fields. rewrite (tot_replace _ _ _ _ _ _ (row_get _ _ _ E)).
    destruct (closed R); [now rewrite plus_inf|apply plus_swap].
  - destruct (same_scope (v :: w :: scope) (ids R v) (cells R)) as [[f u]|] eqn:E.
    + got. split; auto. intros x. apply same_scope_get in E. unfold val. fields.
      rewrite (tot_replace _ _ _ _ _ _ E).
      destruct (closed R); [now rewrite plus_inf|apply plus_swap].
    + destruct (get (xI (next R)) (cells R)) eqn:G; [easy|]. got. split; auto. intros x.
      unfold val. cbn [closed base cells]. unfold tot. rewrite total_set.
      rewrite (total_get _ (xI (next R)) (cells R)), G. unfold one.
      destruct (closed R); [now rewrite plus_inf|]. rewrite plus_0. apply plus_swap.
Qed.

(** ** The smallest entry of each table *)

Definition norm1 (o : option factor) : option factor * Z * bool :=
  match o with
  | None => (None, 0, false)
  | Some (s, t) =>
      match least t with
      | Inf => (o, 0, true)
      | Fin d => if d =? 0 then (o, 0, false) else (Some (s, mapt (fun c => minus c d) t), d, false)
      end
  end.

Fixpoint norm (t : trie factor) : trie factor * Z * bool :=
  match t with
  | Leaf => (Leaf, 0, false)
  | Node l o r =>
      let '(l', a, p) := norm l in
      let '(o', b, q) := norm1 o in
      let '(r', c, s) := norm r in
      (Node l' o' r', a + b + c, p || q || s)
  end.

Lemma norm1_one x o o' d p : norm1 o = (o', d, p) ->
  if p then one (fun c => value c x) o = Inf
  else one (fun c => value c x) o = plus (Fin d) (one (fun c => value c x) o').
Proof.
  destruct o as [[s t]|]; simpl; [|intros [= <- <- <-]; auto].
  assert (L := least_le t (map x s)). unfold value. simpl.
  destruct (least t) as [m|] eqn:E.
  - destruct (Z.eqb_spec m 0); intros [= <- <- <-]; simpl.
    + now rewrite plus_0.
    + rewrite entry_mapt by auto. symmetry. apply minus_plus.
  - intros [= <- <- <-]. destruct (entry t (map x s)); easy.
Qed.

Lemma norm_tot x t t' d p : norm t = (t', d, p) ->
  if p then tot x t = Inf else tot x t = plus (Fin d) (tot x t').
Proof.
  revert t' d p. induction t as [|l IHl o r IHr]; simpl; intros t' d p; [intros [= <- <- <-]; auto|].
  destruct (norm l) as [[l' a] pl]. destruct (norm1 o) as [[o' b] po] eqn:O.
  destruct (norm r) as [[r' e] pr]. intros [= <- <- <-].
  specialize (IHl _ _ _ eq_refl). specialize (IHr _ _ _ eq_refl). apply (norm1_one x) in O.
  unfold tot in *. simpl. unfold one in O.
  destruct pl, po, pr; simpl in *; rewrite ?IHl, ?IHr, ?O; rewrite ?plus_inf; auto.
  repeat match goal with |- context [total ?f ?t] => split_cost (total f t) end; simpl; auto;
    destruct o' as [f|]; simpl; auto; try split_cost (value f x); simpl; auto; f_equal; lia.
Qed.

Definition nonneg (t : trie factor) : Prop :=
  forall p c x, get p t = Some c -> le (Fin 0) (value c x).

Lemma norm_nonneg t t' d : norm t = (t', d, false) -> nonneg t'.
Proof.
  revert t' d. induction t as [|l IHl o r IHr]; simpl; intros t' d.
  - intros [= <- <-]. intros p c x G. destruct p; easy.
  - destruct (norm l) as [[l' a] pl]. destruct (norm1 o) as [[o' b] po] eqn:O.
    destruct (norm r) as [[r' e] pr]. intros [= <- <- P].
    apply orb_false_elim in P as [P ->]. apply orb_false_elim in P as [-> ->].
    intros p c x G. destruct p; simpl in G; [eapply IHr|eapply IHl|]; eauto.
    subst o'. destruct o as [[s t]|]; simpl in O; [|easy].
    assert (L := least_le t (map x s)). unfold value.
    destruct (least t) as [m|]; [|easy].
    destruct (Z.eqb_spec m 0); injection O as <- _; simpl; [now subst|].
    rewrite entry_mapt by auto. destruct (entry t (map x s)); simpl in *; auto. lia.
Qed.

Definition settle (R : red) : red :=
  let '(t, d, p) := norm (cells R) in
  Red t (next R) (of R) (base R + d) (cut R) (closed R || p).

Lemma settle_val R :
  cut (settle R) = cut R /\ (forall x, val (settle R) x = val R x) /\
  (closed (settle R) = true \/ nonneg (cells (settle R))).
Proof.
  unfold settle. destruct (norm (cells R)) as [[t d] p] eqn:E. split; [auto|split].
  - intros x. unfold val. simpl. apply (norm_tot x) in E. destruct (closed R); auto.
    destruct p; simpl; rewrite E; auto. split_cost (tot x t); simpl; auto. f_equal. lia.
  - simpl. destruct p; [left; apply orb_true_r|]. right. eapply norm_nonneg, E.
Qed.

(** As [settle]; costs that are too large for the other checkers are rejected here as well. *)
Definition normalise (R : red) : option red :=
  let R' := settle R in
  ensure (cut R' - base R' <=? half);
  Some R'.

Lemma normalise_val R R' : normalise R = Some R' ->
  cut R' = cut R /\ (forall x, val R' x = val R x) /\ (closed R' = true \/ nonneg (cells R')).
Proof.
  unfold normalise. cbv zeta. destruct (_ <=? _); [|easy]. got. apply settle_val.
Qed.

Lemma normalise_refines R R' : normalise R = Some R' -> refines R R'.
Proof.
  intros H. apply normalise_val in H as (E & V & _). apply refines_same; auto.
  intros x. now rewrite V.
Qed.

(** ** SHIFT *)

Definition shift1 (t : trie factor) (f : positive) (axis : nat) (amounts : list Z) :=
  do (scope, tab) <- get (xI f) t;
  do v <- nth_error scope axis;
  do l <- row t v;
  ensure (Nat.eqb (length amounts) (length l));
  let moved := Row (map (fun d => Val (Fin d)) amounts) in
  Some (set (xO v) (Some ([v], plust (Row l) moved)) (set (xI f) (Some (scope, sub axis amounts tab)) t)).

Lemma shift1_tot t f axis amounts t' x :
  shift1 t f axis amounts = Some t' -> tot x t' = tot x t.
Proof.
  unfold shift1. destruct (get (xI f) t) as [[scope tab]|] eqn:F; [|easy].
  destruct (nth_error scope axis) as [v|] eqn:V; [|easy].
  destruct (row t v) as [l|] eqn:L; [|easy]. destruct (Nat.eqb_spec (length amounts) (length l));
    [|easy]. got.
  assert (G := row_get _ _ _ L).
  assert (G' : get (xO v) (set (xI f) (Some (scope, sub axis amounts tab)) t) = Some ([v], Row l))
    by (rewrite get_set_other; easy).
  rewrite (tot_replace _ _ _ _ _ _ G'). unfold tot. rewrite total_set.
  rewrite (total_at _ (xI f) _ _ F).
  destruct (Nat.lt_ge_cases (x v) (length l)) as [B|B].
  - destruct (nth_error amounts (x v)) as [d|] eqn:D; [|apply nth_error_None in D; lia].
    set (T := total (fun c => value c x) (set (xI f) None t)). clearbody T.
    unfold one, value. cbn [fst snd map].
    rewrite (entry_sub axis amounts tab (map x scope) (x v) d) by
      (rewrite ?nth_error_map, ?V; auto).
    simpl. rewrite nth_error_map, D. simpl.
    split_cost (entry tab (map x scope)); destruct T; simpl; auto; f_equal; lia.
  - replace (total (fun c => value c x) (set (xI f) None t)) with Inf; [now rewrite !plus_inf|].
    symmetry. apply (tot_inf x _ (xO v) ([v], Row l)); [rewrite get_set_other; easy|].
    unfold value. simpl. now rewrite (proj2 (nth_error_None l (x v))).
Qed.

Fixpoint shifts (t : trie factor) (places : list (positive * nat)) (amounts : list Z) :=
  match places with
  | [] => match amounts with [] => Some t | _ => None end
  | (f, axis) :: rest =>
      do (scope, tab) <- get (xI f) t;
      do v <- nth_error scope axis;
      do l <- row t v;
      let d := length l in
      do t' <- shift1 t f axis (firstn d amounts);
      shifts t' rest (skipn d amounts)
  end.

Lemma shifts_tot places : forall t amounts t' x,
  shifts t places amounts = Some t' -> tot x t' = tot x t.
Proof.
  induction places as [|[f axis] places IH]; simpl; intros t amounts t' x.
  - destruct amounts; [|easy]. now got.
  - destruct (get (xI f) t) as [[scope tab]|]; [|easy].
    destruct (nth_error scope axis) as [v|]; [|easy].
    destruct (row t v) as [l|]; [|easy].
    destruct (shift1 t f axis (firstn (length l) amounts)) as [t1|] eqn:S; [|easy].
    intros H. apply IH with (x := x) in H. rewrite H. eapply shift1_tot, S.
Qed.

Definition place (p : Z * Z) : option (positive * nat) :=
  do f <- number (fst p); do axis <- small (snd p); Some (f, axis).

Definition moderate (amounts : list Z) : bool :=
  forallb (fun d => (- largest_move <=? d) && (d <=? largest_move)) amounts.

Definition do_shift (places amounts : list Z) (R : red) : option red :=
  do ps <- pairs places;
  do qs <- every place ps;
  ensure (moderate amounts);
  do t <- shifts (cells R) qs amounts;
  normalise (put t R).

Lemma do_shift_refines places amounts R R' :
  do_shift places amounts R = Some R' -> refines R R'.
Proof.
  unfold do_shift. destruct (pairs places) as [ps|]; [|easy].
  destruct (every place ps) as [qs|]; [|easy]. destruct (moderate amounts); [|easy].
  destruct (shifts (cells R) qs amounts) as [t|] eqn:S; [|easy]. intros H.
  eapply refines_trans; [|apply normalise_refines, H]. apply refines_same; auto.
  intros x. unfold val, put. simpl. now rewrite (shifts_tot _ _ _ _ x S).
Qed.

(** ** Labels of one variable *)

(** The axis of a variable, if it is named exactly once. *)
Fixpoint axis_of (v : positive) (scope : list positive) : option nat :=
  match scope with
  | [] => None
  | u :: rest =>
      if Pos.eqb u v then (if mem v rest then None else Some O)
      else do k <- axis_of v rest; Some (S k)
  end.

Lemma axis_of_at v scope k :
  axis_of v scope = Some k -> nth_error scope k = Some v /\ ~ In v (drop k scope).
Proof.
  revert k. induction scope as [|u scope IH]; simpl; [easy|]. intros k.
  destruct (Pos.eqb_spec u v) as [->|N].
  - destruct (mem v scope) eqn:M; [easy|]. got. split; auto. now apply mem_not.
  - destruct (axis_of v scope) as [j|]; [|easy]. got.
    destruct (IH j eq_refl). split; auto. simpl. intros [H1|H1]; auto.
Qed.

Lemma map_drop {A B} (f : A -> B) k l : map f (drop k l) = drop k (map f l).
Proof. revert l. induction k; intros [|a l]; simpl; auto. now rewrite IHk. Qed.

Lemma axis_drop v scope k x a :
  axis_of v scope = Some k -> drop k (map (upd x v a) scope) = drop k (map x scope).
Proof.
  intros H. apply axis_of_at in H as [_ N]. rewrite <- !map_drop.
  apply map_ext_in. intros u Hu. apply upd_other. intros ->. auto.
Qed.

Lemma axis_nth v scope k (x : labelling) : axis_of v scope = Some k -> nth_error (map x scope) k = Some (x v).
Proof. intros H. apply axis_of_at in H as [H _]. now rewrite nth_error_map, H. Qed.

(** Whether some table forbids a label of a variable, whatever the other labels. *)
Fixpoint barred (v : positive) (a : nat) (t : trie factor) : bool :=
  match t with
  | Leaf => false
  | Node l o r =>
      match o with
      | None => false
      | Some (scope, tab) =>
          match axis_of v scope with
          | Some k => match least (slice k a tab) with Inf => true | _ => false end
          | None => false
          end
      end || barred v a l || barred v a r
  end.

Lemma barred_tot v t x : barred v (x v) t = true -> tot x t = Inf.
Proof.
  unfold tot. induction t as [|l IHl o r IHr]; simpl; [easy|].
  intros H. apply orb_true_elim in H as [H|H]; [apply orb_true_elim in H as [H|H]|].
  - destruct o as [[scope tab]|]; [|easy]. destruct (axis_of v scope) as [k|] eqn:K; [|easy].
    assert (L := least_le (slice k (x v) tab) (drop k (map x scope))).
    rewrite (entry_slice k (x v) tab _ (axis_nth _ _ _ x K)) in L.
    unfold value at 2. simpl. destruct (least (slice k (x v) tab)); [easy|].
    destruct (entry tab (map x scope)); [easy|]. apply plus_inf.
  - now rewrite (IHl H).
  - rewrite (IHr H). now rewrite !plus_inf.
Qed.

(** The largest difference u - w over entries of w that are finite; [None] if all are +∞. *)
Definition cmax (a b : option cost) : option cost :=
  match a, b with
  | None, c | c, None => c
  | Some (Fin x), Some (Fin y) => Some (Fin (Z.max x y))
  | _, _ => Some Inf
  end.

Fixpoint diff (w u : table) {struct w} : option cost :=
  match w, u with
  | Val Inf, _ => None
  | Val (Fin a), Val (Fin b) => Some (Fin (b - a))
  | Val (Fin _), _ => Some Inf
  | Row l, Row k =>
      (fix go l k := match l with
                     | [] => None
                     | a :: l' =>
                         match k with
                         | [] => cmax (diff a (Row [])) (go l' [])
                         | b :: k' => cmax (diff a b) (go l' k')
                         end
                     end) l k
  | Row l, Val _ => Some Inf
  end.

(** Entries of u are at most those of w plus the difference. *)
Definition below (d : option cost) (w u : cost) : Prop :=
  match d with None => w = Inf | Some e => le u (plus w e) end.

Lemma below_l d e w u : below d w u -> below (cmax d e) w u.
Proof.
  destruct d as [[d|]|], e as [[e|]|], w, u; simpl; try easy; try lia.
Qed.
Lemma below_r d e w u : below e w u -> below (cmax d e) w u.
Proof.
  destruct d as [[d|]|], e as [[e|]|], w, u; simpl; try easy; try lia.
Qed.

Lemma diff_below idx : forall w u, below (diff w u) (entry w idx) (entry u idx).
Proof.
  induction idx as [|a idx IH]; intros [w|l] u.
  - destruct w as [w|], u as [[u|]|k]; simpl; auto; lia.
  - simpl. destruct u as [u|k]; simpl; auto.
    match goal with |- below ?e Inf _ => destruct e; simpl; auto end.
  - simpl. destruct w as [w|], u as [[u|]|k]; simpl; auto.
  - destruct u as [u|k]; [simpl; rewrite plus_inf; auto|].
    change (below (diff (Row l) (Row k)) (entry (Row l) (a :: idx)) (entry (Row k) (a :: idx))).
    revert a k. induction l as [|b l IHl]; intros a k; [destruct a; reflexivity|].
    destruct k as [|e k].
    + change (diff (Row (b :: l)) (Row [])) with (cmax (diff b (Row [])) (diff (Row l) (Row []))).
      destruct a as [|a]; [apply below_l|apply below_r].
      * replace (entry (Row []) (0%nat :: idx)) with (entry (Row []) idx)
          by now rewrite !entry_void. apply IH.
      * replace (entry (Row []) (S a :: idx)) with (entry (Row []) (a :: idx))
          by now rewrite !entry_void. apply (IHl a []).
    + change (diff (Row (b :: l)) (Row (e :: k))) with (cmax (diff b e) (diff (Row l) (Row k))).
      destruct a as [|a]; [apply below_l, IH|apply below_r, (IHl a k)].
Qed.

(** How much more a label r of a variable costs than a, at most, for any other labels. *)
Definition gain1 (v : positive) (a r : nat) (c : factor) : option cost :=
  if mem v (fst c) then
    match axis_of v (fst c) with
    | Some k => diff (slice k a (snd c)) (slice k r (snd c))
    | None => Some Inf
    end
  else Some (Fin 0).

Definition oplus (a b : option cost) : option cost :=
  match a, b with Some c, Some d => Some (plus c d) | _, _ => None end.

Fixpoint gain (v : positive) (a r : nat) (t : trie factor) : option cost :=
  match t with
  | Leaf => Some (Fin 0)
  | Node l o r' =>
      oplus (gain v a r l)
        (oplus (match o with Some c => gain1 v a r c | None => Some (Fin 0) end) (gain v a r r'))
  end.

Lemma gain1_below v r c x : below (gain1 v (x v) r c) (value c x) (value c (upd x v r)).
Proof.
  unfold gain1. destruct (mem v (fst c)) eqn:M.
  - destruct (axis_of v (fst c)) as [k|] eqn:K; [|simpl; now rewrite plus_inf].
    unfold value. rewrite <- (entry_slice k (x v) (snd c) (map x (fst c))) by now apply axis_nth.
    rewrite <- (entry_slice k r (snd c) (map (upd x v r) (fst c)))
      by (rewrite (axis_nth _ _ _ _ K), upd_same; auto).
    rewrite (axis_drop _ _ _ x r K). apply diff_below.
  - simpl. rewrite value_upd by now apply mem_not. split_cost (value c x); simpl; auto. lia.
Qed.

Lemma oplus_below d e w u w' u' :
  below d w u -> below e w' u' -> below (oplus d e) (plus w w') (plus u u').
Proof.
  destruct d as [[d|]|], e as [[e|]|], w, u, w', u'; simpl; try easy; try lia.
Qed.

Lemma gain_below v r t x : below (gain v (x v) r t) (tot x t) (tot (upd x v r) t).
Proof.
  unfold tot. induction t as [|l IHl o r' IHr]; simpl; [lia|].
  apply oplus_below; auto. apply oplus_below; auto.
  destruct o as [c|]; [apply gain1_below|simpl; lia].
Qed.

Definition dominated (v : positive) (a r : nat) (t : trie factor) : bool :=
  match gain v a r t with
  | None => true
  | Some (Fin d) => d <=? 0
  | Some Inf => false
  end.

Lemma dominated_tot v r t x :
  dominated v (x v) r t = true -> le (tot (upd x v r) t) (tot x t).
Proof.
  unfold dominated. assert (B := gain_below v r t x). destruct (gain v (x v) r t) as [[d|]|]; [|easy|].
  - intros H. apply Z.leb_le in H. simpl in B.
    split_cost (tot x t); split_cost (tot (upd x v r) t); simpl in *; auto; lia.
  - simpl in B. rewrite B. auto.
Qed.

(** ** REMOVE *)

Definition memn (a : nat) (l : list nat) : bool := existsb (Nat.eqb a) l.

Lemma memn_in a l : memn a l = true <-> In a l.
Proof.
  unfold memn. rewrite existsb_exists. split.
  - intros (u & H & E). apply Nat.eqb_eq in E. now subst.
  - intros H. exists a. split; auto. apply Nat.eqb_refl.
Qed.

Fixpoint removals (v : positive) (t : trie factor) (kept : list nat) (which : list (Z * Z)) :=
  match which with
  | [] => Some kept
  | (a, reason) :: rest =>
      do a <- small a;
      ensure (memn a kept);
      let rest_of := filter (fun b => negb (Nat.eqb a b)) kept in
      if reason =? -1 then ensure (barred v a t); removals v t rest_of rest
      else
        do r <- small reason;
        ensure (memn r rest_of);
        ensure (dominated v a r t);
        removals v t rest_of rest
  end.

Lemma tot_agree x y t : (forall v, x v = y v) -> tot x t = tot y t.
Proof.
  intros H. unfold tot. induction t as [|l IHl o r IHr]; simpl; auto. rewrite IHl, IHr.
  destruct o as [c|]; auto. now rewrite (value_agree c x y).
Qed.

Lemma upd_id x v u : upd x v (x v) u = x u.
Proof. unfold upd. destruct (Pos.eqb_spec u v); congruence. Qed.

Lemma upd_twice x v a b u : upd (upd x v a) v b u = upd x v b u.
Proof. unfold upd. now destruct (Pos.eqb u v). Qed.

Lemma removals_tot v t which : forall kept kept' x,
  removals v t kept which = Some kept' -> In (x v) kept ->
  tot x t = Inf \/ exists b, In b kept' /\ le (tot (upd x v b) t) (tot x t).
Proof.
  induction which as [|[az reason] which IH]; simpl; intros kept kept' x H I.
  - injection H as <-. right. exists (x v). split; auto.
    rewrite (tot_agree (upd x v (x v)) x); auto. apply upd_id.
  - destruct (small az) as [a|]; [|easy]. destruct (memn a kept) eqn:M; [|easy].
    set (left := filter (fun b => negb (Nat.eqb a b)) kept) in *.
    assert (L : x v <> a -> In (x v) left).
    { intros N. apply filter_In. split; auto. apply negb_true_iff, Nat.eqb_neq. congruence. }
    destruct (reason =? -1).
    + destruct (barred v a t) eqn:B; [|easy].
      destruct (Nat.eq_dec (x v) a) as [<-|N]; [left; now apply barred_tot with v|].
      eapply IH; eauto.
    + destruct (small reason) as [r|]; [|easy]. destruct (memn r left) eqn:R; [|easy].
      destruct (dominated v a r t) eqn:D; [|easy].
      destruct (Nat.eq_dec (x v) a) as [<-|N]; [|eapply IH; eauto].
      apply dominated_tot in D. destruct (IH left kept' (upd x v r) H) as [E|(b & Hb & E)].
      * rewrite upd_same. now apply memn_in.
      * left. rewrite E in D. now destruct (tot x t).
      * right. exists b. split; auto. rewrite (tot_agree _ (upd x v b)) in E by apply upd_twice.
        eapply le_trans; eauto.
Qed.

(** Keep only some labels of a variable, in all tables. *)
Fixpoint keep (v : positive) (kept : list nat) (t : trie factor) : option (trie factor) :=
  match t with
  | Leaf => Some Leaf
  | Node l o r =>
      do l' <- keep v kept l;
      do r' <- keep v kept r;
      match o with
      | None => Some (Node l' None r')
      | Some (scope, tab) =>
          if mem v scope then
            do k <- axis_of v scope;
            Some (Node l' (Some (scope, take k kept tab)) r')
          else Some (Node l' o r')
      end
  end.

Lemma keep_tot v kept t : forall t' x j,
  keep v kept t = Some t' -> nth_error kept j = Some (x v) -> tot (upd x v j) t' = tot x t.
Proof.
  unfold tot. induction t as [|l IHl o r IHr]; simpl; intros t' x j H J; [now injection H as <-|].
  destruct (keep v kept l) as [l'|]; [|easy]. destruct (keep v kept r) as [r'|]; [|easy].
  specialize (IHl l' x j eq_refl J). specialize (IHr r' x j eq_refl J).
  destruct o as [[scope tab]|]; [|injection H as <-; simpl; now rewrite IHl, IHr].
  destruct (mem v scope) eqn:M.
  - destruct (axis_of v scope) as [k|] eqn:K; [|easy]. injection H as <-. simpl.
    rewrite IHl, IHr. f_equal. f_equal. unfold value. simpl.
    eapply entry_take; [apply (axis_nth _ _ _ _ K)|rewrite upd_same; apply J|
      apply (axis_nth _ _ _ _ K)|apply axis_drop, K].
  - injection H as <-. simpl. rewrite IHl, IHr. f_equal. f_equal.
    apply value_upd. now apply mem_not.
Qed.

Definition do_remove (which labels : list Z) (R : red) : option red :=
  match which with
  | [z] =>
      do v <- number z;
      do l <- row (cells R) v;
      do ps <- pairs labels;
      do kept <- removals v (cells R) (seq 0 (length l)) ps;
      match kept with
      | [] => Some (close R)
      | _ => do t <- keep v kept (cells R); Some (put t R)
      end
  | _ => None
  end.

Lemma do_remove_refines which labels R R' : do_remove which labels R = Some R' -> refines R R'.
Proof.
  unfold do_remove. destruct which as [|z [|]]; try easy. destruct (number z) as [v|]; [|easy].
  destruct (row (cells R) v) as [l|] eqn:L; [|easy]. destruct (pairs labels) as [ps|]; [|easy].
  destruct (removals v (cells R) (seq 0 (length l)) ps) as [kept|] eqn:E; [|easy].
  assert (P : forall x, tot x (cells R) = Inf \/
    exists b, In b kept /\ le (tot (upd x v b) (cells R)) (tot x (cells R))).
  { intros x. destruct (row_range _ _ _ x L) as [I|I]; auto.
    eapply removals_tot; eauto. apply in_seq. lia. }
  assert (Q : forall x, tot x (cells R) = Inf -> val R x = Inf).
  { intros x I. unfold val. rewrite I. now destruct (closed R). }
  destruct kept as [|k kept].
  - got. split; auto. intros x. exists x. destruct (P x) as [I|(b & [] & _)].
    rewrite Q; auto.
  - destruct (keep v (k :: kept) (cells R)) as [t|] eqn:K; [|easy]. got. split; auto.
    intros x. destruct (P x) as [I|(b & B & I)]; [exists x; rewrite Q; auto|].
    apply In_nth_error in B as [j J].
    exists (upd (upd x v b) v j). eapply le_trans; [apply cmin_r|]. unfold val. simpl.
    rewrite (keep_tot v (k :: kept) (cells R) t (upd x v b) j K) by now rewrite upd_same.
    destruct (closed R); [auto|now apply plus_le].
Qed.
