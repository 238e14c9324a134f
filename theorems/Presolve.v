(** PERSISTENT, SPLIT, SUBSTITUTE and ELIMINATE. *)

Require Import ZArith List Lia Bool Mergesort Orders.
Require Import Statement Costs Reduce.
Import ListNotations.
Local Open Scope Z_scope.

(** ** PERSISTENT: labels of some variables that are optimal for any labels of the others *)

Definition fixed (fix_ : trie nat) (x : labelling) : labelling :=
  fun v => match get v fix_ with Some a => a | None => x v end.
Definition zeroed (fix_ : trie nat) (x : labelling) : labelling :=
  fun v => match get v fix_ with Some _ => O | None => x v end.

(** For each axis of a table, the label that its variable is fixed to. *)
Definition axes (fix_ : trie nat) (scope : list positive) : list (option nat) :=
  map (fun v => get v fix_) scope.

Fixpoint chosen (ax : list (option nat)) (idx : list nat) : list nat :=
  match ax, idx with
  | Some a :: ax', _ :: idx' => a :: chosen ax' idx'
  | None :: ax', b :: idx' => b :: chosen ax' idx'
  | _, _ => []
  end.

Lemma chosen_map fix_ scope x : chosen (axes fix_ scope) (map x scope) = map (fixed fix_ x) scope.
Proof.
  induction scope as [|v scope IH]; simpl; auto. unfold fixed at 1.
  destruct (get v fix_); now rewrite IH.
Qed.

(** Whether no entry of [t] is below the entry of [b] with the fixed labels. *)
Fixpoint improves (ax : list (option nat)) (b t : table) : bool :=
  match ax, b, t with
  | [], Val c, Val d => leb c d
  | Some a :: ax', Row k, Row l => forallb (improves ax' (nth a k (Row []))) l
  | None :: ax', Row k, Row l =>
      Nat.eqb (length k) (length l) && forallb (fun p => improves ax' (fst p) (snd p)) (combine k l)
  | _, _, _ => false
  end.

Lemma improves_le ax : forall b t idx, improves ax b t = true -> length idx = length ax ->
  le (entry b (chosen ax idx)) (entry t idx).
Proof.
  induction ax as [|[a|] ax IH]; intros b t idx H L.
  - destruct idx; [|easy]. destruct b, t; try easy. simpl in *. now apply leb_le.
  - destruct idx as [|i idx]; [easy|]. destruct b as [|k], t as [|l]; try easy. simpl in *.
    rewrite forallb_forall in H. destruct (nth_error l i) as [u|] eqn:U; auto.
    apply nth_error_In in U. apply H in U. apply (IH _ _ idx) in U; [|lia].
    destruct (nth_error k a) as [w|] eqn:W.
    + now rewrite (nth_error_nth _ _ _ W) in U.
    + rewrite nth_overflow in U by now apply nth_error_None. now rewrite entry_void in U.
  - destruct idx as [|i idx]; [easy|]. destruct b as [|k], t as [|l]; try easy. simpl in *.
    apply andb_true_iff in H as [E H]. apply Nat.eqb_eq in E. rewrite forallb_forall in H.
    destruct (nth_error l i) as [u|] eqn:U; auto.
    destruct (nth_error k i) as [w|] eqn:W.
    + apply (IH w u idx); [|lia]. apply (H (w, u)), (nth_error_In _ i).
      now rewrite nth_error_combine, W, U.
    + apply nth_error_None in W. assert (i < length l)%nat by (apply nth_error_Some; congruence). lia.
Qed.

Definition touches (fix_ : trie nat) (c : factor) : bool :=
  existsb (fun v => match get v fix_ with Some _ => true | None => false end) (fst c).

Fixpoint all_cells (p : factor -> bool) (t : trie factor) : bool :=
  match t with
  | Leaf => true
  | Node l o r =>
      match o with Some c => p c | None => true end && all_cells p l && all_cells p r
  end.

Lemma all_cells_get p t q c : all_cells p t = true -> get q t = Some c -> p c = true.
Proof.
  revert q. induction t as [|l IHl o r IHr]; intros q H G; [destruct q; easy|].
  simpl in H. apply andb_true_iff in H as [H R]. apply andb_true_iff in H as [O L].
  destruct q; simpl in G; eauto. now subst.
Qed.

Definition improves_cell (fix_ : trie nat) (c : factor) : bool :=
  negb (touches fix_ c) || improves (axes fix_ (fst c)) (snd c) (snd c).

Lemma improves_tot fix_ t x :
  all_cells (improves_cell fix_) t = true -> le (tot (fixed fix_ x) t) (tot x t).
Proof.
  intros H. apply total_mono. intros q c G. apply (all_cells_get _ _ _ _ H) in G.
  unfold improves_cell in G. unfold value. rewrite <- chosen_map.
  destruct (touches fix_ c) eqn:T; simpl in G.
  - apply improves_le; auto. unfold axes. now rewrite !map_length.
  - rewrite chosen_map. replace (map (fixed fix_ x) (fst c)) with (map x (fst c)); auto.
    apply map_ext_in. intros v V. unfold fixed. destruct (get v fix_) eqn:E; auto.
    assert (touches fix_ c = true); [|congruence]. apply existsb_exists. exists v. now rewrite E.
Qed.

Fixpoint map_trie {A} (f : A -> A) (t : trie A) : trie A :=
  match t with
  | Leaf => Leaf
  | Node l o r => Node (map_trie f l) (option_map f o) (map_trie f r)
  end.

Definition twice (c : factor) : factor := (fst c, mapt (fun d => plus d d) (snd c)).

Lemma twice_value x c : value (twice c) x = plus (value c x) (value c x).
Proof. unfold value, twice. cbn [fst snd]. now rewrite entry_mapt. Qed.

Lemma twice_tot x t : tot x (map_trie twice t) = plus (tot x t) (tot x t).
Proof.
  unfold tot. induction t as [|l IHl o r IHr]; simpl; auto. rewrite IHl, IHr.
  destruct o as [c|]; simpl.
  - rewrite twice_value.
    split_cost (total (fun c => value c x) l); split_cost (total (fun c => value c x) r);
      split_cost (value c x); simpl; auto; f_equal; lia.
  - split_cost (total (fun c => value c x) l); split_cost (total (fun c => value c x) r);
      simpl; auto; f_equal; lia.
Qed.

(** Only the fixed labels, in all tables. *)
Fixpoint fix_table (ax : list (option nat)) (t : table) : table :=
  match ax, t with
  | [], _ => t
  | Some a :: ax', Row l => Row [fix_table ax' (nth a l (Row []))]
  | None :: ax', Row l => Row (map (fix_table ax') l)
  | _ :: _, Val _ => Row []
  end.

Lemma fix_table_entry fix_ x scope : forall t,
  entry (fix_table (axes fix_ scope) t) (map (zeroed fix_ x) scope) =
  entry t (map (fixed fix_ x) scope).
Proof.
  induction scope as [|v scope IH]; intros t; [destruct t; auto|]. simpl.
  unfold zeroed at 1, fixed at 1. destruct (get v fix_) as [a|], t as [c|l]; simpl.
  - auto.
  - rewrite IH. destruct (nth_error l a) as [u|] eqn:U; [now rewrite (nth_error_nth _ _ _ U)|].
    rewrite nth_overflow by now apply nth_error_None. apply entry_void.
  - destruct (x v); auto.
  - rewrite nth_error_map. destruct (nth_error l (x v)); simpl; auto.
Qed.

Definition fix_cell (fix_ : trie nat) (c : factor) : factor :=
  if touches fix_ c then (fst c, fix_table (axes fix_ (fst c)) (snd c)) else c.

Lemma fix_cell_value fix_ c x : value (fix_cell fix_ c) (zeroed fix_ x) = value c (fixed fix_ x).
Proof.
  unfold fix_cell. destruct (touches fix_ c) eqn:T; [apply fix_table_entry|].
  apply value_agree. intros v V. unfold zeroed, fixed. destruct (get v fix_) eqn:E; auto.
  assert (touches fix_ c = true); [|congruence]. apply existsb_exists. exists v. now rewrite E.
Qed.

Lemma fix_tot fix_ t x : tot (zeroed fix_ x) (map_trie (fix_cell fix_) t) = tot (fixed fix_ x) t.
Proof.
  unfold tot. induction t as [|l IHl o r IHr]; simpl; auto. rewrite IHl, IHr.
  destruct o as [c|]; simpl; auto. now rewrite fix_cell_value.
Qed.

Module PosOrder <: TotalLeBool.
  Definition t := positive.
  Definition leb := Pos.leb.
  Theorem leb_total : forall a b, leb a b = true \/ leb b a = true.
  Proof. intros a b. unfold leb. rewrite !Pos.leb_le. lia. Qed.
End PosOrder.
Module PosSort := Sort PosOrder.

Fixpoint unique (l : list positive) : list positive :=
  match l with
  | a :: (b :: _) as rest => if Pos.eqb a b then unique rest else a :: unique rest
  | _ => l
  end.

(** The factors of some variables, in order, and all their axes. *)
Definition factors_of (R : red) (vs : list positive) : list positive :=
  let present v f :=
    match get (xI f) (cells R) with Some c => mem v (fst c) | None => false end in
  unique (PosSort.sort (flat_map (fun v => filter (present v) (ids R v)) vs)).

Definition places_of (R : red) (f : positive) : list (positive * nat) :=
  match get (xI f) (cells R) with
  | Some c => map (fun k => (f, k)) (seq 0 (length (fst c)))
  | None => []
  end.

Fixpoint finite (t : table) : bool :=
  match t with
  | Val (Fin _) => true
  | Val Inf => false
  | Row l => forallb finite l
  end.

Definition fixings (ps : list (Z * Z)) : option (list (positive * nat)) :=
  every (fun p => do v <- number (fst p); do a <- small (snd p); Some (v, a)) ps.

Definition in_range (R : red) (p : positive * nat) : bool :=
  match row (cells R) (fst p) with Some l => Nat.ltb (snd p) (length l) | None => false end.

Definition do_persistent (labels amounts : list Z) (R : red) : option red :=
  do ps <- pairs labels;
  do qs <- fixings ps;
  ensure (forallb (in_range R) qs && moderate amounts);
  let fix_ := fold_left (fun t p => set (fst p) (Some (snd p)) t) qs Leaf in
  ensure (all_cells (fun c => negb (touches fix_ c) || finite (snd c)) (cells R));
  let places := flat_map (places_of R) (factors_of R (map fst qs)) in
  do t <- shifts (map_trie twice (cells R)) places amounts;
  ensure (all_cells (improves_cell fix_) t);
  Some (put (map_trie (fix_cell fix_) (cells R)) R).

Lemma do_persistent_refines labels amounts R R' :
  do_persistent labels amounts R = Some R' -> refines R R'.
Proof.
  unfold do_persistent. destruct (pairs labels) as [ps|]; [|easy].
  destruct (fixings ps) as [qs|]; [|easy].
  destruct (forallb (in_range R) qs && moderate amounts); [|easy].
  set (fix_ := fold_left _ qs Leaf). destruct (all_cells _ (cells R)); [|easy].
  destruct (shifts _ _ amounts) as [t|] eqn:S; [|easy].
  destruct (all_cells (improves_cell fix_) t) eqn:I; [|easy]. got. split; auto. intros x.
  exists (zeroed fix_ x). eapply le_trans; [apply cmin_r|]. unfold val. fields.
  destruct (closed R); auto. apply plus_le. rewrite fix_tot.
  assert (L := improves_tot fix_ t x I).
  rewrite (shifts_tot _ _ _ _ x S), (shifts_tot _ _ _ _ (fixed fix_ x) S), !twice_tot in L.
  split_cost (tot (fixed fix_ x) (cells R)); split_cost (tot x (cells R)); simpl in *; auto; lia.
Qed.

(** ** SPLIT *)

Definition at2 (i j : nat) (idx : list nat) : list nat := [nth i idx O; nth j idx O].

(** The smallest entry of a table for each pair of labels of two axes. *)
Definition pair_table (ds : list nat) (t : table) (i j : nat) : table :=
  tabulate [nth i ds O; nth j ds O] (fun ab =>
    minover (map (fun k => if Nat.eqb k i then [nth 0 ab O] else if Nat.eqb k j then [nth 1 ab O]
                           else seq 0 (nth k ds O)) (seq 0 (length ds)))
      (entry t)).

Definition less (a b : cost) : cost := match b with Fin d => minus a d | Inf => a end.

Fixpoint zeros (t : table) : bool :=
  match t with
  | Val (Fin c) => c =? 0
  | Val Inf => false
  | Row l => forallb zeros l
  end.

(** The tables of all pairs in turn, without tables of zeros. *)
Fixpoint pair_tables (ds : list nat) (rest : table) (ps : list (nat * nat)) :=
  match ps with
  | [] => []
  | (i, j) :: ps' =>
      let p := pair_table ds rest i j in
      let rest' := tabulate ds (fun idx => less (entry rest idx) (entry p (at2 i j idx))) in
      if zeros p then pair_tables ds rest' ps' else (i, j, p) :: pair_tables ds rest' ps'
  end.

Definition axis_pairs (n : nat) : list (nat * nat) :=
  flat_map (fun j => map (fun i => (i, j)) (seq 0 j)) (seq 0 n).

Definition pair_sum (ps : list (nat * nat * table)) (idx : list nat) : cost :=
  sum (map (fun q => let '(i, j, p) := q in entry p (at2 i j idx)) ps).

Fixpoint add_all (cs : list factor) (R : red) : option red :=
  match cs with
  | [] => Some R
  | c :: rest => do R' <- add c R; add_all rest R'
  end.

Lemma add_all_val cs : forall R R', add_all cs R = Some R' ->
  cut R' = cut R /\ forall x, val R' x = plus (sum (map (fun c => value c x) cs)) (val R x).
Proof.
  induction cs as [|c cs IH]; simpl; intros R R' H.
  - injection H as <-. split; auto. intros x. symmetry. apply plus_0.
  - destruct (add c R) as [S|] eqn:A; [|easy]. apply add_val in A as [E A].
    apply IH in H as [F H]. split; [congruence|]. intros x. rewrite H, A.
    change (fold_right plus (Fin 0) (map (fun c => value c x) cs))
      with (sum (map (fun c => value c x) cs)). rewrite plus_swap. apply plus_assoc.
Qed.

Definition do_split (which : list Z) (R : red) : option red :=
  match which with
  | [z] =>
      do f <- number z;
      do (scope, t) <- get (xI f) (cells R);
      ensure (Nat.leb 3 (length scope));
      do ds <- shape (cells R) scope;
      let ps := pair_tables ds t (axis_pairs (length scope)) in
      ensure (allover (map (seq 0) ds) (fun idx => leb (pair_sum ps idx) (entry t idx)));
      add_all (map (fun q => let '(i, j, p) := q in ([nth i scope xH; nth j scope xH], p)) ps)
        (put (set (xI f) None (cells R)) R)
  | _ => None
  end.

Lemma pair_scope (x : labelling) scope i j : (i < length scope)%nat -> (j < length scope)%nat ->
  map x [nth i scope xH; nth j scope xH] = at2 i j (map x scope).
Proof.
  intros I J. unfold at2. simpl.
  rewrite (nth_indep (map x scope) O (x xH)) by (now rewrite map_length).
  rewrite (nth_indep (map x scope) O (x xH)) by (now rewrite map_length).
  now rewrite !map_nth.
Qed.

Lemma pair_tables_in ds rest ps i j p : In (i, j, p) (pair_tables ds rest ps) -> In (i, j) ps.
Proof.
  revert rest. induction ps as [|[a b] ps IH]; intros rest; [easy|].
  cbn [pair_tables]. cbv zeta.
  match goal with |- context [zeros ?q] => destruct (zeros q) end; intros H.
  - right. eapply IH, H.
  - destruct H as [H|H]; [injection H as -> -> _; now left|right; eapply IH, H].
Qed.

Lemma axis_pairs_in n i j : In (i, j) (axis_pairs n) -> (i < n)%nat /\ (j < n)%nat.
Proof.
  intros H. apply in_flat_map in H as (k & K & H). apply in_seq in K.
  apply in_map_iff in H as (a & [= <- <-] & A). apply in_seq in A. lia.
Qed.

Lemma do_split_refines which R R' : do_split which R = Some R' -> refines R R'.
Proof.
  unfold do_split. destruct which as [|z [|]]; try easy. destruct (number z) as [f|]; [|easy].
  destruct (get (xI f) (cells R)) as [[scope t]|] eqn:F; [|easy].
  destruct (Nat.leb 3 (length scope)); [|easy].
  destruct (shape (cells R) scope) as [ds|] eqn:D; [|easy].
  set (ps := pair_tables ds t (axis_pairs (length scope))).
  destruct (allover _ _) eqn:A; [|easy]. intros H. apply add_all_val in H as [E H].
  apply refines_same; auto. intros x. rewrite H. unfold val. fields. destruct (closed R); auto.
  destruct (shape_fits _ _ _ x D) as [I|I]; [rewrite I; auto|].
  apply (allover_all _ _ (map x scope)) in A; [|now apply fits_seq]. apply leb_le in A.
  rewrite plus_swap. apply plus_le. unfold tot at 2. rewrite (total_at _ _ _ _ F).
  apply plus_mono; [|apply le_refl]. eapply le_trans; [|apply A].
  unfold pair_sum. rewrite map_map. apply sum_mono. intros [[i j] p] Q.
  apply pair_tables_in, axis_pairs_in in Q as [Hi Hj]. unfold value. cbn [fst snd].
  rewrite pair_scope by auto. auto.
Qed.

(** ** Tables with other scopes *)

Fixpoint insert (v : positive) (l : list positive) : list positive :=
  match l with
  | [] => [v]
  | u :: rest =>
      if Pos.eqb v u then l else if Pos.ltb v u then v :: l else u :: insert v rest
  end.

Lemma insert_in v u l : In u (insert v l) <-> u = v \/ In u l.
Proof.
  induction l as [|w l IH]; simpl; [intuition|].
  destruct (Pos.eqb_spec v w) as [->|]; [simpl; intuition|].
  destruct (Pos.ltb v w); simpl; [intuition|]. rewrite IH. intuition.
Qed.

Definition without (v : positive) (l : list positive) : list positive :=
  filter (fun u => negb (Pos.eqb u v)) l.

Lemma without_in v u l : u <> v -> In u l -> In u (without v l).
Proof.
  intros N I. apply filter_In. split; auto. apply negb_true_iff. now apply Pos.eqb_neq.
Qed.

(** A table over a scope, from a function of labellings. *)
Definition over (t : trie factor) (scope : list positive) (f : labelling -> cost) : option factor :=
  do ds <- shape t scope;
  ensure (fold_right Z.mul 1 (map Z.of_nat ds) <=? largest_table);
  Some (scope, tabulate ds (fun idx => f (env scope idx))).

Lemma over_value t scope f c x :
  over t scope f = Some c -> tot x t = Inf \/ value c x = f (env scope (map x scope)).
Proof.
  unfold over. destruct (shape t scope) as [ds|] eqn:D; [|easy].
  destruct (_ <=? largest_table); [|easy]. got.
  destruct (shape_fits _ _ _ x D) as [I|I]; auto. right. unfold value. simpl.
  now rewrite entry_tabulate.
Qed.

(** ** Sums of tables, entry by entry along a scope *)

(** Whether a scope lists some of the variables of another one, in their order. *)
Fixpoint subseq (s scope : list positive) : bool :=
  match scope, s with
  | _, [] => true
  | [], _ :: _ => false
  | v :: scope', u :: s' => if Pos.eqb u v then subseq s' scope' else subseq s scope'
  end.

(** For each label of a variable, a table: another row each time, or always the same table. *)
Inductive strand := Each (s : list positive) (rows : list table) | Same (c : factor).

Definition strand_of (v : positive) (c : factor) : strand :=
  match c with
  | (u :: s, t) =>
      if Pos.eqb u v then Each s (match t with Row rows => rows | Val _ => [] end) else Same c
  | ([], _) => Same c
  end.

Definition now (s : strand) : factor :=
  match s with Each s (r :: _) => (s, r) | Each s [] => (s, Row []) | Same c => c end.
Definition later (s : strand) : strand :=
  match s with Each s (_ :: rows) => Each s rows | _ => s end.
Definition now_at (a : nat) (s : strand) : factor :=
  match s with Each s rows => (s, nth a rows (Row [])) | Same c => c end.

(** The table over a scope of the smallest sum of a group of tables. *)
Fixpoint joint (ds : list nat) (scope : list positive) (groups : list (list factor)) : table :=
  match ds, scope with
  | d :: ds', v :: scope' =>
      Row ((fix go n strands :=
              match n with
              | O => []
              | S k => joint ds' scope' (map (map now) strands) :: go k (map (map later) strands)
              end) d (map (map (strand_of v)) groups))
  | _, _ => Val (smallest (map (fun g => sum (map (fun c => entry (snd c) []) g)) groups))
  end.

Lemma strand_value v c x : value (now_at (x v) (strand_of v c)) x = value c x.
Proof.
  destruct c as [[|u s] t]; auto. simpl. destruct (Pos.eqb_spec u v) as [->|]; auto.
  unfold value. cbn [fst snd map now_at]. destruct t as [c|rows]; simpl.
  - destruct (x v); apply entry_void.
  - destruct (nth_error rows (x v)) as [r|] eqn:E; [now rewrite (nth_error_nth _ _ _ E)|].
    rewrite nth_overflow by now apply nth_error_None. apply entry_void.
Qed.

Lemma strand_subseq v a c scope : subseq (fst c) (v :: scope) = true ->
  subseq (fst (now_at a (strand_of v c))) scope = true.
Proof.
  destruct c as [[|u s] t]; simpl; [now destruct scope|]. now destruct (Pos.eqb u v).
Qed.

Lemma now_later a s : now_at a (later s) = now_at (S a) s.
Proof. destruct s as [s [|r rows]|c]; simpl; auto. now destruct a. Qed.

Lemma now_now s : now s = now_at 0 s.
Proof. now destruct s as [s [|r rows]|c]. Qed.

Lemma joint_entry scope : forall ds groups x, fits (map x scope) ds ->
  (forall g c, In g groups -> In c g -> subseq (fst c) scope = true) ->
  entry (joint ds scope groups) (map x scope) =
  smallest (map (fun g => sum (map (fun c => value c x) g)) groups).
Proof.
  induction scope as [|v scope IH]; intros ds groups x F H.
  - inversion F; subst. simpl. f_equal. apply map_ext_in. intros g G. f_equal.
    apply map_ext_in. intros c C. specialize (H g c G C). unfold value.
    destruct c as [[|u s] t]; [auto|easy].
  - inversion F as [|a d idx ds' A F' E1 E2]; subst.
    assert (GO : forall n strands a, (a < n)%nat ->
      nth_error ((fix go n strands :=
              match n with
              | O => []
              | S k => joint ds' scope (map (map now) strands) :: go k (map (map later) strands)
              end) n strands) a = Some (joint ds' scope (map (map (now_at a)) strands))).
    { induction n as [|n IHn]; intros strands b B; [lia|]. destruct b as [|b]; simpl.
      - do 2 f_equal. apply map_ext. intros g. apply map_ext. apply now_now.
      - rewrite IHn by lia. do 2 f_equal. rewrite map_map. apply map_ext. intros g.
        rewrite map_map. apply map_ext. apply now_later. }
    cbn [joint map entry]. rewrite GO by auto. rewrite IH; auto.
    + rewrite !map_map. f_equal. apply map_ext. intros g. f_equal. rewrite !map_map.
      apply map_ext. intros c. apply strand_value.
    + intros g c G C. rewrite map_map in G. apply in_map_iff in G as (g0 & <- & G).
      rewrite map_map in C. apply in_map_iff in C as (c0 & <- & C). eapply strand_subseq, H; eauto.
Qed.

(** The unary costs of a variable and its factors, taken out. *)
Fixpoint taken (v : positive) (fs : list positive) (t : trie factor) : list factor * trie factor :=
  match fs with
  | [] => ([], t)
  | f :: rest =>
      match get (xI f) t with
      | Some c =>
          if mem v (fst c) then
            let '(cs, t') := taken v rest (set (xI f) None t) in (c :: cs, t')
          else taken v rest t
      | None => taken v rest t
      end
  end.

Lemma taken_tot v fs x : forall t cs t', taken v fs t = (cs, t') ->
  tot x t = plus (sum (map (fun c => value c x) cs)) (tot x t').
Proof.
  induction fs as [|f fs IH]; simpl; intros t cs t' H.
  - injection H as <- <-. simpl. now rewrite plus_0.
  - destruct (get (xI f) t) as [c|] eqn:G; [|eauto]. destruct (mem v (fst c)); [|eauto].
    destruct (taken v fs (set (xI f) None t)) as [ds u] eqn:T. injection H as <- <-.
    apply IH in T. unfold tot at 1. rewrite (total_at _ _ _ _ G). unfold tot in T. rewrite T.
    simpl. apply plus_assoc.
Qed.

Definition take_all (v : positive) (R : red) : option (list factor * red) :=
  do l <- row (cells R) v;
  let '(cs, t) := taken v (ids R v) (set (xO v) None (cells R)) in
  Some (([v], Row l) :: cs, put t R).

Lemma take_all_val v R cs S : take_all v R = Some (cs, S) ->
  cut S = cut R /\ forall x, val R x = plus (sum (map (fun c => value c x) cs)) (val S x).
Proof.
  unfold take_all. destruct (row (cells R) v) as [l|] eqn:L; [|easy].
  destruct (taken v (ids R v) (set (xO v) None (cells R))) as [ds t] eqn:T. intros [= <- <-].
  split; auto. intros x. unfold val. fields. destruct (closed R); [now rewrite plus_inf|].
  unfold tot at 1. rewrite (total_at _ _ _ _ (row_get _ _ _ L)).
  apply (taken_tot _ _ x) in T. unfold tot at 1 in T. rewrite T.
  cbn [map]. unfold sum at 2. cbn [fold_right]. fold (sum (map (fun c => value c x) ds)).
  unfold value at 1 3. cbn [fst snd].
  match goal with |- plus _ (plus ?a (plus ?b ?c)) = _ => destruct a, b, c end; simpl; auto; f_equal; lia.
Qed.

Definition scope_of (v : positive) (cs : list factor) : list positive :=
  fold_right insert [] (without v (flat_map fst cs)).

Lemma scope_of_in v cs c u : In c cs -> In u (fst c) -> u <> v -> In u (scope_of v cs).
Proof.
  intros C U N. unfold scope_of.
  assert (I : In u (without v (flat_map fst cs))).
  { apply without_in; auto. apply in_flat_map. eauto. }
  induction (without v (flat_map fst cs)) as [|w l IH]; [easy|]. simpl. apply insert_in.
  destruct I as [->|I]; auto.
Qed.

Definition sliced (v : positive) (a : nat) (c : factor) : factor :=
  match axis_of v (fst c) with
  | Some k => (drop k (fst c), slice k a (snd c))
  | None => c
  end.

Lemma sliced_value v c x : value (sliced v (x v) c) x = value c x.
Proof.
  unfold sliced. destruct (axis_of v (fst c)) as [k|] eqn:K; auto. unfold value. cbn [fst snd].
  rewrite map_drop. apply entry_slice. now apply axis_nth.
Qed.

(** The minimum over the labels of a variable of the sum of some tables. *)
Definition minimum (t : trie factor) (v : positive) (d : nat) (cs : list factor) : option factor :=
  let scope := scope_of v cs in
  let groups := map (fun a => map (sliced v a) cs) (seq 0 d) in
  do ds <- shape t scope;
  ensure (fold_right Z.mul 1 (map Z.of_nat ds) <=? largest_table);
  ensure (forallb (forallb (fun c => subseq (fst c) scope)) groups);
  Some (scope, joint ds scope groups).

Lemma minimum_le t v d cs c x : minimum t v d cs = Some c -> (x v < d)%nat ->
  tot x t = Inf \/ le (value c x) (sum (map (fun c => value c x) cs)).
Proof.
  unfold minimum. cbv zeta. set (scope := scope_of v cs). set (groups := map _ (seq 0 d)).
  destruct (shape t scope) as [ds|] eqn:D; [|easy]. destruct (_ <=? largest_table); [|easy].
  match goal with |- (ensure ?b; _) = _ -> _ => destruct b eqn:S; [|easy] end. intros H X. apply some_inj in H. subst c.
  destruct (shape_fits _ _ _ x D) as [I|I]; auto. right. unfold value at 1. cbn [fst snd].
  rewrite joint_entry; auto.
  - apply smallest_in, in_map_iff. exists (map (sliced v (x v)) cs). split.
    + f_equal. rewrite map_map. apply map_ext. intros e. apply sliced_value.
    + unfold groups. apply in_map_iff. exists (x v). split; auto. apply in_seq. lia.
  - intros g e G E. rewrite forallb_forall in S. specialize (S g G).
    rewrite forallb_forall in S. auto.
Qed.

(** ** SUBSTITUTE *)

(** Costs 0 if y is the image of x, and +∞ otherwise. *)
Definition tie (t : trie factor) (x y : positive) (image : list nat) : option factor :=
  over t (insert x [y])
    (fun e => if Nat.eqb (e y) (nth (e x) image O) then Fin 0 else Inf).

Definition do_substitute (which function : list Z) (R : red) : option red :=
  match which with
  | [number_; zx; zy] =>
      do f <- number number_; do x <- number zx; do y <- number zy;
      do image <- every small function;
      do lx <- row (cells R) x; do ly <- row (cells R) y;
      do c <- get (xI f) (cells R);
      ensure (if list_eq_dec Pos.eq_dec (fst c) (insert x [y]) then negb (Pos.eqb x y) else false);
      ensure (Nat.eqb (length image) (length lx)
             && forallb (fun b => Nat.ltb b (length ly)) image);
      ensure (allover [seq 0 (length lx); seq 0 (length ly)] (fun ab =>
        Nat.eqb (nth 1 ab O) (nth (nth 0 ab O) image O)
        || leb Inf (value c (env [x; y] ab))));
      do k <- tie (cells R) x y image;
      do (cs, Q) <- take_all y R;
      do ds <- every (fun c => minimum (cells Q) y (length ly) [c; k]) cs;
      add_all ds Q
  | _ => None
  end.

Lemma substituted_values t y d k z : value k z = Fin 0 -> (z y < d)%nat -> tot z t = Inf \/
  forall cs ds, every (fun c => minimum t y d [c; k]) cs = Some ds ->
  le (sum (map (fun c => value c z) ds)) (sum (map (fun c => value c z) cs)).
Proof.
  intros K Y. destruct (tot z t) as [total_|] eqn:T; auto. right. intros cs.
  induction cs as [|c cs IH]; simpl; intros ds H; [injection H as <-; apply le_refl|].
  destruct (minimum t y d [c; k]) as [e|] eqn:D; [|easy].
  destruct (every _ cs) as [es|]; [|easy]. apply some_inj in H. subst.
  cbn [map]. rewrite !sum_cons. apply plus_mono; [|now apply IH].
  apply (minimum_le _ _ _ _ _ z) in D as [D|D]; [congruence| |auto].
  cbn [map] in D. rewrite !sum_cons, K in D. change (sum []) with (Fin 0) in D.
  destruct (value c z), (value e z); simpl in *; auto. lia.
Qed.

Lemma do_substitute_refines which function R R' :
  do_substitute which function R = Some R' -> refines R R'.
Proof.
  unfold do_substitute. destruct which as [|number_ [|zx [|zy [|]]]]; try easy.
  destruct (number number_) as [f|]; [|easy]. destruct (number zx) as [x|]; [|easy].
  destruct (number zy) as [y|]; [|easy]. destruct (every small function) as [image|]; [|easy].
  destruct (row (cells R) x) as [lx|] eqn:LX; [|easy].
  destruct (row (cells R) y) as [ly|] eqn:LY; [|easy].
  destruct (get (xI f) (cells R)) as [c|] eqn:C; [|easy].
  destruct (list_eq_dec Pos.eq_dec (fst c) (insert x [y])) as [SC|]; [|easy].
  destruct (Pos.eqb_spec x y) as [|NXY]; [easy|]. cbn [negb].
  destruct (_ && _); [|easy]. destruct (allover _ _) eqn:A; [|easy].
  destruct (tie (cells R) x y image) as [k|] eqn:TK; [|easy].
  destruct (take_all y R) as [[cs S]|] eqn:T; [|easy]. apply take_all_val in T as [E T].
  destruct (every _ cs) as [ds|] eqn:D; [|easy]. intros H. apply add_all_val in H as [F H].
  apply refines_same; [congruence|]. intros z. rewrite H.
  destruct (tot z (cells R)) as [d|] eqn:I.
  2:{ replace (val R z) with Inf; auto. unfold val. rewrite I. now destruct (closed R). }
  destruct (row_range _ _ _ z LX) as [|BX]; [congruence|].
  destruct (row_range _ _ _ z LY) as [|BY]; [congruence|].
  assert (Y : z y = nth (z x) image O).
  { apply (allover_all _ _ [z x; z y]) in A.
    - simpl in A. apply orb_true_elim in A as [A|A]; [now apply Nat.eqb_eq in A|].
      assert (value c z = Inf); [|rewrite (tot_inf z _ _ _ C) in I; easy].
      rewrite (value_agree c z (upd (upd (fun _ => O) y (z y)) x (z x))).
      + destruct (value c _); [easy|auto].
      + intros v V. rewrite SC in V. apply insert_in in V as [->|[->|[]]].
        * now rewrite upd_same.
        * rewrite upd_other by auto. now rewrite upd_same.
    - repeat constructor; apply in_seq; lia. }
  assert (K : value k z = Fin 0).
  { apply (over_value _ _ _ _ z) in TK as [TK|TK]; [congruence|]. rewrite TK.
    rewrite !env_map by (apply insert_in; simpl; auto). now rewrite Y, Nat.eqb_refl. }
  rewrite T. destruct (substituted_values (cells S) y (length ly) k z K BY) as [J|J].
  { replace (val S z) with Inf; [rewrite !plus_inf; auto|]. unfold val. rewrite J.
    now destruct (closed S). }
  apply plus_mono; [now apply J|auto].
Qed.

(** ** ELIMINATE *)

Fixpoint minima (v : positive) (d : nat) (groups : list (list factor)) (R : red) : option red :=
  match groups with
  | [] => Some R
  | g :: rest =>
      do c <- minimum (cells R) v d g;
      match least (snd c) with
      | Inf => Some (close R)
      | Fin m =>
          do R' <- add (fst c, mapt (fun e => minus e m) (snd c)) (raise m R);
          minima v d rest R'
      end
  end.

Lemma minima_val v d groups : forall R R' x, minima v d groups R = Some R' -> (x v < d)%nat ->
  cut R' = cut R /\
  le (val R' x) (plus (sum (map (fun c => value c x) (concat groups))) (val R x)).
Proof.
  induction groups as [|g groups IH]; simpl; intros R R' x H X.
  - injection H as <-. rewrite plus_0. auto.
  - destruct (minimum (cells R) v d g) as [c|] eqn:M; [|easy].
    rewrite map_app, sum_app.
    destruct (minimum_le _ _ _ _ _ x M X) as [I|I].
    + assert (J : val R x = Inf) by (unfold val; rewrite I; now destruct (closed R)).
      rewrite J, plus_inf. split; auto. destruct (least (snd c)) as [m|]; [|now injection H as <-].
      destruct (add _ (raise m R)) as [S|] eqn:A; [|easy]. apply add_val in A as [E _].
      apply (IH _ _ x) in H as [F _]; auto. simpl in E. congruence.
    + destruct (least (snd c)) as [m|] eqn:L.
      * destruct (add _ (raise m R)) as [S|] eqn:A; [|easy]. apply add_val in A as [E A].
        apply (IH _ _ x) in H as [F H]; auto. split; [simpl in E; congruence|].
        eapply le_trans; [apply H|]. rewrite A. unfold value at 2. cbn [fst snd].
        rewrite entry_mapt by auto. fold (value c x).
        rewrite (plus_comm (sum (map _ g))), <- plus_assoc. apply plus_le.
        unfold val. fields. destruct (closed R); [rewrite !plus_inf; auto|].
        split_cost (tot x (cells R)); split_cost (value c x);
          split_cost (sum (map (fun c => value c x) g)); simpl in *; auto; lia.
      * injection H as <-. split; auto. unfold val. fields.
        assert (V := least_le (snd c) (map x (fst c))). rewrite L in V. fold (value c x) in V.
        destruct (value c x); [easy|].
        destruct (sum (map (fun c => value c x) g)); [easy|]. auto.
Qed.

Lemma minima_cut v d groups : forall R R', minima v d groups R = Some R' -> cut R' = cut R.
Proof.
  induction groups as [|g groups IH]; simpl; intros R R' H; [now injection H as <-|].
  destruct (minimum (cells R) v d g) as [c|]; [|easy].
  destruct (least (snd c)) as [m|]; [|now injection H as <-].
  destruct (add _ (raise m R)) as [S|] eqn:A; [|easy]. apply add_val in A as [E _].
  apply IH in H. simpl in E. congruence.
Qed.

Definition do_eliminate (which : list Z) (R : red) : option red :=
  match which with
  | [z] =>
      do v <- number z;
      do l <- row (cells R) v;
      do (cs, Q) <- take_all v R;
      let groups := if Nat.ltb 1 (length l) then [cs] else map (fun c => [c]) cs in
      minima v (length l) groups Q
  | _ => None
  end.

Lemma concat_single {A} (l : list A) : concat (map (fun a => [a]) l) = l.
Proof. induction l; simpl; congruence. Qed.

Lemma do_eliminate_refines which R R' : do_eliminate which R = Some R' -> refines R R'.
Proof.
  unfold do_eliminate. destruct which as [|z [|]]; try easy. destruct (number z) as [v|]; [|easy].
  destruct (row (cells R) v) as [l|] eqn:L; [|easy].
  destruct (take_all v R) as [[cs S]|] eqn:T; [|easy]. apply take_all_val in T as [E T]. intros H.
  assert (C : concat (if Nat.ltb 1 (length l) then [cs] else map (fun c => [c]) cs) = cs).
  { destruct (Nat.ltb 1 (length l)); [apply app_nil_r|apply concat_single]. }
  assert (V : forall x, (x v < length l)%nat -> cut R' = cut S /\ le (val R' x) (val R x)).
  { intros x X. apply (minima_val _ _ _ _ _ x) in H as [F H]; auto. rewrite C in H.
    split; auto. now rewrite T. }
  destruct (length l) as [|d] eqn:D.
  - apply minima_cut in H. split; [congruence|]. intros x. exists x.
    destruct (row_range _ _ _ x L) as [I|I]; [|lia].
    replace (val R x) with Inf; auto. unfold val. rewrite I. now destruct (closed R).
  - destruct (V (fun _ => O)) as [F _]; [lia|]. split; [congruence|]. intros x. exists x.
    destruct (row_range _ _ _ x L) as [I|I].
    + replace (val R x) with Inf; auto. unfold val. rewrite I. now destruct (closed R).
    + eapply le_trans; [apply cmin_r|]. apply V. congruence.
Qed.
