(** DUAL: λ moves costs between tables: from a factor of two variables to the variables, and between
    a factor or a cluster and a smaller table over some of its variables. Whatever λ and the tables
    are, the sum of the smallest entries is a lower bound. *)

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

(** ** One edge between a table and a smaller one over some of its variables *)

Definition amount (t : table) (labels : list nat) : Z :=
  match entry t labels with Fin z => z | Inf => 0 end.

(** Entries minus amounts; without an amount, they stay. *)
Fixpoint lessen (t u : table) {struct t} : table :=
  match t, u with
  | Val c, Val (Fin z) => Val (minus c z)
  | Row l, Row k =>
      Row ((fix go l k := match l, k with
                          | a :: l', b :: k' => lessen a b :: go l' k'
                          | _, _ => l
                          end) l k)
  | _, _ => t
  end.

(** The amounts of entries that are not +∞. *)
Fixpoint amounts (t u : table) {struct t} : table :=
  match t, u with
  | Val Inf, _ => Val Inf
  | Val (Fin _), Val (Fin z) => Val (Fin z)
  | Val (Fin _), _ => Val (Fin 0)
  | Row l, Row k =>
      Row ((fix go l k := match l with
                          | [] => []
                          | a :: l' => match k with
                                       | [] => amounts a (Row []) :: go l' []
                                       | b :: k' => amounts a b :: go l' k'
                                       end
                          end) l k)
  | Row l, Val _ => Row (map (fun a => amounts a (Row [])) l)
  end.

Lemma minus_0 c : minus c 0 = c.
Proof. destruct c; simpl; auto. f_equal. lia. Qed.

Lemma amount_void idx : amount (Row []) idx = 0.
Proof. unfold amount. now rewrite entry_void. Qed.

Lemma lessen_entry idx : forall t u, entry (lessen t u) idx = minus (entry t idx) (amount u idx).
Proof.
  unfold amount. induction idx as [|a idx IH]; intros [c|l] [[z|]|k]; simpl; auto;
    try (now rewrite minus_0); try (now destruct a);
    try (destruct (nth_error l a); auto; now rewrite minus_0).
  revert a k. induction l as [|b l IHl]; intros a k; [now destruct a, k|].
  destruct k as [|e k].
  - replace (nth_error [] a) with (@None table) by now destruct a.
    destruct (nth_error (b :: l) a); auto. now rewrite minus_0.
  - destruct a as [|a]; simpl; auto.
Qed.

Lemma amounts_entry idx : forall t u,
  entry (amounts t u) idx = match entry t idx with Fin _ => Fin (amount u idx) | Inf => Inf end.
Proof.
  induction idx as [|a idx IH]; intros [[c|]|l] [[z|]|k]; simpl; auto; try (now destruct a);
    try (rewrite nth_error_map; destruct (nth_error l a) as [b|]; simpl; auto;
         rewrite IH, amount_void; unfold amount; simpl; now destruct (entry b idx)).
  revert a k. induction l as [|b l IHl]; intros a k; [now destruct a, k|].
  destruct k as [|e k].
  - unfold amount. simpl. replace (nth_error [] a) with (@None table) by now destruct a.
    destruct a as [|a]; simpl.
    + rewrite IH, amount_void. now destruct (entry b idx).
    + specialize (IHl a []). unfold amount in IHl. simpl in IHl.
      replace (nth_error [] a) with (@None table) in IHl by now destruct a. auto.
  - destruct a as [|a]; simpl; [now rewrite IH|]. rewrite IHl. unfold amount. simpl. auto.
Qed.

(** [mu] is taken from the larger table, [lam] from the smaller one, and their smallest sum added. *)
Definition couple (R : red) (p q : positive) (mu lam : table) : option red :=
  do (s, t) <- get p (cells R);
  do (r, u) <- get q (cells R);
  do ds <- shape (cells R) s;
  ensure (negb (Pos.eqb p q) && subseq s s && subseq r s);
  match least (joint ds s [[(s, amounts t mu); (r, amounts u lam)]]) with
  | Inf => Some (close R)
  | Fin d =>
      Some (raise d (put (set q (Some (r, lessen u lam)) (set p (Some (s, lessen t mu)) (cells R))) R))
  end.

(** The larger table is +∞ where the smaller one is. *)
Definition masked (R : red) (p q : positive) : option red :=
  do (s, t) <- get p (cells R);
  do (r, u) <- get q (cells R);
  do ds <- shape (cells R) s;
  ensure (negb (Pos.eqb p q) && subseq s s && subseq r s);
  Some (put (set p (Some (s, joint ds s [[(s, t); (r, amounts u (Row []))]])) (cells R)) R).

Lemma masked_refines R p q R' : masked R p q = Some R' -> refines R R'.
Proof.
  unfold masked. destruct (get p (cells R)) as [[s t]|] eqn:P; [|easy].
  destruct (get q (cells R)) as [[r u]|] eqn:Q; [|easy].
  destruct (shape (cells R) s) as [ds|] eqn:D; [|easy].
  destruct (negb (Pos.eqb p q)) eqn:N; [|easy]. destruct (subseq s s) eqn:S1; [|easy].
  destruct (subseq r s) eqn:S2; [|easy]. cbn [andb].
  apply negb_true_iff, Pos.eqb_neq in N. set (j := joint _ _ _). got.
  apply refines_same; auto. intros x. unfold val. fields. destruct (closed R); [auto|]. apply plus_le.
  destruct (tot x (cells R)) as [d0|] eqn:T; [|auto].
  destruct (shape_fits _ _ _ x D) as [|F]; [congruence|].
  unfold tot in *. rewrite (total_at _ _ _ _ P) in T. rewrite (total_set _ p). unfold one.
  assert (Q' : get q (set p None (cells R)) = Some (r, u)) by (rewrite get_set_other; auto).
  assert (E : value (s, j) x = plus (value (s, t) x) (value (r, amounts u (Row [])) x)).
  { unfold value at 1. cbn [fst snd]. unfold j. rewrite joint_entry; auto.
    - cbn [map smallest fold_right sum]. generalize (value (s, t) x), (value (r, amounts u (Row [])) x).
      intros [a|] [b|]; simpl; auto. f_equal. lia.
    - intros g c [<-|[]] [<-|[<-|[]]]; auto. }
  rewrite E, <- T, (total_at _ _ _ _ Q').
  replace (value (r, amounts u (Row [])) x)
    with (match value (r, u) x with Fin _ => Fin 0 | Inf => Inf end)
    by (unfold value; cbn [fst snd]; rewrite amounts_entry, amount_void; auto).
  generalize (value (s, t) x), (value (r, u) x),
    (total (fun c => value c x) (set q None (set p None (cells R)))).
  intros [a|] [b|] [e|]; simpl; auto; lia.
Qed.

(** The smallest entries of a table over some variables. *)
Fixpoint project (t : trie factor) (c : factor) (vs : list positive) : option factor :=
  match vs with
  | [] => Some c
  | v :: rest =>
      do l <- row t v;
      do c' <- minimum t v (length l) [c];
      project t c' rest
  end.

Lemma project_le t vs x d : tot x t = Fin d -> forall c c', project t c vs = Some c' ->
  le (value c' x) (value c x).
Proof.
  intros T. induction vs as [|v vs IH]; intros c c' H; [injection H as <-; auto|].
  cbn [project] in H. destruct (row t v) as [l|] eqn:L; [|easy].
  destruct (minimum t v (length l) [c]) as [e|] eqn:M; [|easy].
  destruct (row_range _ _ _ x L) as [|B]; [congruence|].
  eapply le_trans; [eapply IH, H|].
  apply (minimum_le _ _ _ _ _ x) in M as [M|M]; [congruence| |auto].
  cbn [map sum fold_right] in M. destruct (value c x), (value e x); simpl in *; auto. lia.
Qed.

(** The smaller table is +∞ where all entries of the larger one are. *)
Definition lowered (R : red) (p q : positive) : option red :=
  do (s, t) <- get p (cells R);
  do (r, u) <- get q (cells R);
  do c <- project (cells R) (s, amounts t (Row [])) (filter (fun v => negb (mem v r)) s);
  do ds <- shape (cells R) r;
  ensure (negb (Pos.eqb p q) && subseq r r && subseq (fst c) r);
  Some (put (set q (Some (r, joint ds r [[(r, u); c]])) (cells R)) R).

Lemma lowered_refines R p q R' : lowered R p q = Some R' -> refines R R'.
Proof.
  unfold lowered. destruct (get p (cells R)) as [[s t]|] eqn:P; [|easy].
  destruct (get q (cells R)) as [[r u]|] eqn:Q; [|easy].
  destruct (project _ _ _) as [c|] eqn:J; [|easy].
  destruct (shape (cells R) r) as [ds|] eqn:D; [|easy].
  destruct (negb (Pos.eqb p q)) eqn:N; [|easy]. destruct (subseq r r) eqn:S1; [|easy].
  destruct (subseq (fst c) r) eqn:S2; [|easy]. cbn [andb].
  apply negb_true_iff, Pos.eqb_neq in N. set (j := joint _ _ _). got.
  apply refines_same; auto. intros x. unfold val. fields. destruct (closed R); [auto|]. apply plus_le.
  destruct (tot x (cells R)) as [d0|] eqn:T; [|auto].
  destruct (shape_fits _ _ _ x D) as [|F]; [congruence|].
  apply (project_le _ _ x d0 T) in J. unfold value at 2 in J. cbn [fst snd] in J.
  rewrite amounts_entry, amount_void in J.
  destruct (entry t (map x s)) as [e|] eqn:E.
  2:{ rewrite (tot_inf x _ _ _ P) in T by auto. easy. }
  assert (V : value (r, j) x = plus (value (r, u) x) (value c x)).
  { unfold value at 1. cbn [fst snd]. unfold j. rewrite joint_entry; auto.
    - cbn [map smallest fold_right sum]. generalize (value (r, u) x), (value c x).
      intros [a|] [b|]; simpl; auto. f_equal. lia.
    - intros g k [<-|[]] [<-|[<-|[]]]; auto. }
  rewrite <- T. unfold tot. rewrite (total_set _ q), (total_at _ _ _ _ Q). unfold one. rewrite V.
  revert J. generalize (value (r, u) x), (value c x),
    (total (fun c => value c x) (set q None (cells R))).
  intros [a|] [b|] [k|]; simpl; auto; lia.
Qed.

Lemma couple_refines R p q mu lam R' : couple R p q mu lam = Some R' -> refines R R'.
Proof.
  unfold couple. destruct (get p (cells R)) as [[s t]|] eqn:P; [|easy].
  destruct (get q (cells R)) as [[r u]|] eqn:Q; [|easy].
  destruct (shape (cells R) s) as [ds|] eqn:D; [|easy].
  destruct (negb (Pos.eqb p q)) eqn:N; [|easy]. destruct (subseq s s) eqn:S1; [|easy].
  destruct (subseq r s) eqn:S2; [|easy]. cbn [andb].
  apply negb_true_iff, Pos.eqb_neq in N. set (j := joint _ _ _). intros H.
  assert (C : cut R' = cut R) by (destruct (least j); apply some_inj in H; subst R'; auto).
  apply refines_same; auto. intros x. unfold val at 2. destruct (closed R) eqn:CL; [auto|].
  destruct (tot x (cells R)) as [d0|] eqn:T; [|simpl; auto].
  destruct (shape_fits _ _ _ x D) as [|F]; [congruence|].
  assert (J : entry j (map x s) = plus (value (s, amounts t mu) x) (value (r, amounts u lam) x)).
  { unfold j. rewrite joint_entry; auto.
    - cbn [map smallest fold_right sum]. generalize (value (s, amounts t mu) x), (value (r, amounts u lam) x).
      intros [a|] [b|]; simpl; auto. f_equal. lia.
    - intros g c [<-|[]] [<-|[<-|[]]]; auto. }
  unfold value in J. cbn [fst snd] in J. rewrite !amounts_entry in J.
  assert (L := least_le j (map x s)). rewrite J in L. clear J.
  assert (Q' : get q (set p None (cells R)) = Some (r, u)) by (rewrite get_set_other; auto).
  unfold tot in T. rewrite (total_at _ _ _ _ P), (total_at _ _ _ _ Q') in T.
  unfold value at 1 2 in T. cbn [fst snd] in T.
  destruct (entry t (map x s)) as [a|] eqn:A; [|easy]. destruct (entry u (map x r)) as [b|] eqn:B; [|easy].
  destruct (least j) as [d|]; [|easy]. apply some_inj in H. subst R'. unfold val. fields. rewrite CL.
  unfold tot. rewrite (total_set _ q), set_comm, (total_set _ p) by auto.
  rewrite (set_comm p q) by auto.
  unfold one, value at 1 2. cbn [fst snd]. rewrite !lessen_entry, A, B.
  destruct (total (fun c => value c x) (set q None (set p None (cells R)))) as [k|]; simpl in *; [|easy].
  injection T as <-. lia.
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
Definition at_scope (R : red) (s : list positive) : option positive :=
  do v <- hd_error s;
  do (f, _) <- same_scope s (ids R v) (cells R);
  Some f.

Definition sorted (sc : list positive) : list positive := fold_right insert [] sc.

(** The key of the table over some variables; if there is none, one of zeros is added. *)
Definition region (R : red) (sc : list positive) : option (red * positive) :=
  match sc with
  | [v] => Some (R, xO v)
  | _ =>
      let s := sorted sc in
      match at_scope R s with
      | Some f => Some (R, xI f)
      | None =>
          ensure (Nat.eqb (length s) (length sc));
          do c <- over (cells R) s (fun _ => Fin 0);
          do R' <- add c R;
          do f <- at_scope R' s;
          Some (R', xI f)
      end
  end.

Definition pair_edge (R : red) (f : positive) (i j : positive) (l k : list Z) : option red :=
  do (s, t) <- get (xI f) (cells R);
  do a <- axis_of i s; do b <- axis_of j s;
  do t1 <- shift1 (cells R) f a (map Z.opp l);
  do t2 <- shift1 t1 f b (map Z.opp k);
  Some (put t2 R).

Fixpoint cutoff (n : nat) (l : list Z) : option (list Z * list Z) :=
  match n, l with
  | O, _ => Some ([], l)
  | S k, z :: l' => do (a, b) <- cutoff k l'; Some (z :: a, b)
  | S _, [] => None
  end.

(** A table whose axes are in another order. *)
Definition arranged (R : red) (sc : list positive) (t : table) : option table :=
  let s := sorted sc in
  if list_eq_dec Pos.eq_dec s sc then Some t
  else do c <- over (cells R) s (fun e => entry t (map e sc)); Some (snd c).

Notation edge := (list Z * option (list Z))%type.

Fixpoint all_edges (R : red) (es : list edge) (lam : list Z) : option red :=
  match es with
  | [] => match lam with [] => Some R | _ => None end
  | (zs, sub) :: rest =>
      do sc <- every number zs;
      do (R0, p) <- region R sc;
      do ds <- shape (cells R0) sc;
      match sub, p, sc, ds with
      | None, xI f, [i; j], [d0; d1] =>
          do (l, r) <- cutoff d0 lam;
          do (q, r') <- cutoff d1 r;
          do R' <- pair_edge R0 f i j l q;
          all_edges R' rest r'
      | Some ys, _, _, _ =>
          do sb <- every number ys;
          do (R1, q) <- region R0 sb;
          do bs <- shape (cells R1) sb;
          do (l, r) <- cutoff (size ds) lam;
          do (k, r') <- cutoff (size bs) r;
          do mu <- arranged R1 sc (fst (build ds l));
          do la <- arranged R1 sb (fst (build bs k));
          do R' <- couple R1 p q mu la;
          all_edges R' rest r'
      | _, _, _, _ => None
      end
  end.

(** All tables that the edges need. *)
Fixpoint all_regions (R : red) (es : list edge) : option red :=
  match es with
  | [] => Some R
  | (zs, sub) :: rest =>
      do sc <- every number zs; do sb <- every number (match sub with Some ys => ys | None => zs end);
      do (R0, _) <- region R sc; do (R1, _) <- region R0 sb;
      all_regions R1 rest
  end.

(** Entries are +∞ where those of a smaller table, or all those of a larger one, are. *)
Fixpoint all_masks (R : red) (es : list (list Z * list Z)) : option red :=
  match es with
  | [] => Some R
  | (zs, ys) :: rest =>
      do sc <- every number zs; do sb <- every number ys;
      do (R0, p) <- region R sc; do (R1, q) <- region R0 sb;
      do R2 <- masked R1 p q;
      do R3 <- lowered R2 p q;
      all_masks R3 rest
  end.

Fixpoint finites (t : table) : Z :=
  match t with Val (Fin _) => 1 | Val Inf => 0 | Row l => fold_right Z.add 0 (map finites l) end.
Fixpoint all_finites (t : trie factor) : Z :=
  match t with
  | Leaf => 0
  | Node l o r => all_finites l + match o with Some c => finites (snd c) | None => 0 end + all_finites r
  end.

(** Repeated until nothing changes. *)
Fixpoint consistent (n : nat) (R : red) (es : list (list Z * list Z)) : option red :=
  match n with
  | O => Some R
  | S k =>
      do R' <- all_masks R es;
      if all_finites (cells R') =? all_finites (cells R) then Some R' else consistent k R' es
  end.

(** Without entries +∞ nothing changes, and without clusters the costs are consistent already. *)
Definition prepared (R : red) (es : list edge) : option red :=
  do R0 <- all_regions R es;
  let several := existsb (fun e => match snd e with Some (_ :: _ :: _) => true | _ => false end) es in
  let smaller (e : edge) := match snd e with
                            | Some ys => [(fst e, ys)]
                            | None => map (fun z => (fst e, [z])) (fst e)
                            end in
  if negb several || all_cells (fun c => finite (snd c)) (cells R0) then Some R0
  else consistent 100 R0 (flat_map smaller es).

Lemma region_refines R sc R' p : region R sc = Some (R', p) -> refines R R'.
Proof.
  assert (G : region R sc = Some (R', p) -> R' = R \/
    exists c, over (cells R) (sorted sc) (fun _ => Fin 0) = Some c /\ add c R = Some R').
  { unfold region. destruct sc as [|v [|w sc]].
    2:{ intros [= <- _]. auto. }
    all: cbv zeta; match goal with |- context [at_scope ?Q ?s] => destruct (at_scope Q s) end;
      [intros [= <- _]; auto|];
      match goal with |- (ensure ?b; _) = _ -> _ => destruct b; [|easy] end;
      match goal with |- (do _ <- ?a; _) = _ -> _ => destruct a as [c|]; [|easy] end;
      match goal with |- (do _ <- ?a; _) = _ -> _ => destruct a as [Q|] eqn:A; [|easy] end;
      match goal with |- (do _ <- ?a; _) = _ -> _ => destruct a; [|easy] end;
      intros [= <- _]; right; exists c; auto. }
  intros H. apply G in H as [->|(c & O & A)]; [apply refines_refl|].
  apply add_val in A as [C A]. apply refines_same; auto. intros x. rewrite A.
  apply (over_value _ _ _ _ x) in O as [O|O].
  - replace (val R x) with Inf; [auto|]. unfold val. rewrite O. now destruct (closed R).
  - rewrite O, plus_0. auto.
Qed.

Lemma pair_edge_refines R f i j l k R' : pair_edge R f i j l k = Some R' -> refines R R'.
Proof.
  unfold pair_edge. destruct (get (xI f) (cells R)) as [[s t]|]; [|easy].
  destruct (axis_of i s) as [a|]; [|easy]. destruct (axis_of j s) as [b|]; [|easy].
  destruct (shift1 (cells R) f a (map Z.opp l)) as [t1|] eqn:S1; [|easy].
  destruct (shift1 t1 f b (map Z.opp k)) as [t2|] eqn:S2; [|easy]. got.
  apply refines_same; auto. intros x. unfold val. fields.
  rewrite (shift1_tot _ _ _ _ _ x S2), (shift1_tot _ _ _ _ _ x S1). auto.
Qed.

Lemma all_edges_refines es : forall R lam R', all_edges R es lam = Some R' -> refines R R'.
Proof.
  induction es as [|[zs sub] es IH]; intros R lam R' H; cbn [all_edges] in H.
  - destruct lam; [|easy]. injection H as <-. apply refines_refl.
  - destruct (every number zs) as [sc|]; [|easy]. destruct (region R sc) as [[R0 p]|] eqn:RG; [|easy].
    apply region_refines in RG. eapply refines_trans; [exact RG|]. clear RG.
    destruct (shape (cells R0) sc) as [ds|]; [|easy]. destruct sub as [ys|].
    + destruct (every number ys) as [sb|]; [|easy]. destruct (region R0 sb) as [[R1 q]|] eqn:RG; [|easy].
      apply region_refines in RG. eapply refines_trans; [exact RG|]. clear RG.
      destruct (shape (cells R1) sb) as [bs|]; [|easy].
      destruct (cutoff (size ds) lam) as [[l r]|]; [|easy].
      destruct (cutoff (size bs) r) as [[k r']|]; [|easy].
      destruct (arranged R1 sc _) as [mu|]; [|easy]. destruct (arranged R1 sb _) as [la|]; [|easy].
      destruct (couple R1 p q mu la) as [Q|] eqn:M; [|easy].
      eapply refines_trans; [eapply couple_refines, M|eapply IH, H].
    + destruct p as [f| |]; try easy.
      destruct sc as [|i [|j [|]]]; try easy. destruct ds as [|d0 [|d1 [|]]]; try easy.
      destruct (cutoff d0 lam) as [[l r]|]; [|easy]. destruct (cutoff d1 r) as [[q r']|]; [|easy].
      destruct (pair_edge R0 f i j l q) as [Q|] eqn:M; [|easy].
      eapply refines_trans; [eapply pair_edge_refines, M|eapply IH, H].
Qed.

Lemma all_regions_refines es : forall R R', all_regions R es = Some R' -> refines R R'.
Proof.
  induction es as [|[zs sub] es IH]; intros R R' H; cbn [all_regions] in H.
  - injection H as <-. apply refines_refl.
  - destruct (every number zs) as [sc|]; [|easy]. destruct (every number _) as [sb|]; [|easy].
    destruct (region R sc) as [[R0 p]|] eqn:G0; [|easy]. destruct (region R0 sb) as [[R1 q]|] eqn:G1; [|easy].
    apply region_refines in G0, G1.
    eapply refines_trans; [exact G0|]. eapply refines_trans; [exact G1|eapply IH, H].
Qed.

Lemma all_masks_refines es : forall R R', all_masks R es = Some R' -> refines R R'.
Proof.
  induction es as [|[zs ys] es IH]; intros R R' H; cbn [all_masks] in H.
  - injection H as <-. apply refines_refl.
  - destruct (every number zs) as [sc|]; [|easy]. destruct (every number ys) as [sb|]; [|easy].
    destruct (region R sc) as [[R0 p]|] eqn:G0; [|easy]. destruct (region R0 sb) as [[R1 q]|] eqn:G1; [|easy].
    apply region_refines in G0, G1. destruct (masked R1 p q) as [R2|] eqn:M; [|easy].
    destruct (lowered R2 p q) as [R3|] eqn:L; [|easy].
    eapply refines_trans; [exact G0|]. eapply refines_trans; [exact G1|].
    eapply refines_trans; [eapply masked_refines, M|].
    eapply refines_trans; [eapply lowered_refines, L|eapply IH, H].
Qed.

Lemma consistent_refines n es : forall R R', consistent n R es = Some R' -> refines R R'.
Proof.
  induction n as [|n IH]; intros R R' H; cbn [consistent] in H; [injection H as <-; apply refines_refl|].
  destruct (all_masks R es) as [Q|] eqn:M; [|easy]. apply all_masks_refines in M.
  destruct (_ =? _); [injection H as <-; auto|]. eapply refines_trans; [apply M|eapply IH, H].
Qed.

Lemma prepared_refines R es R' : prepared R es = Some R' -> refines R R'.
Proof.
  unfold prepared. destruct (all_regions R es) as [Q|] eqn:A; [|easy]. apply all_regions_refines in A.
  cbv zeta. destruct (_ || _); intros H; [injection H as <-; auto|].
  eapply refines_trans; [apply A|eapply consistent_refines, H].
Qed.

(** Costs and λ in multiples of the smallest power of two that occurs. *)
Definition finest (e : Z) (ds : list (Z * Z)) : Z :=
  fold_left (fun s d => if fst d =? 0 then s else Z.min s (snd d)) ds e.

Definition reach (w : Z -> Z) (m : model) : Z :=
  fold_right Z.add 0 (map (fun f =>
    let u := mapt (lift w) (snd f) in
    match least u with Fin l => Z.max 0 (highest u - l) | Inf => 0 end) (blocks m)).

Definition dual (m : model) (e : Z) (edges : list edge) (bits : list Z) : option (Z * (Z * Z)) :=
  do ds <- every double bits;
  let s := finest e ds in
  let n := 2 ^ (e - s) in
  let lam := map (fun d => if fst d =? 0 then 0 else Z.shiftl (fst d) (snd d - s)) ds in
  let w := fun z => Z.shiftl z (e - s) in
  let most := Z.max 0 (reach w m) in
  ensure ((0 <? n) && (0 <=? e - s));
  do R <- load_sums w most m;
  do R0 <- prepared R edges;
  do R1 <- all_edges (put (map_trie (mask_cell (cells R0)) (cells R0)) R0) edges lam;
  let R2 := settle (put (map_trie (mask_cell (cells R1)) (cells R1)) R1) in
  let b := if closed R2 then cut R2 else Z.min (cut R2) (base R2) in
  Some (constant m - (- b) / n, dplus (constant m, e) (b, s)).

Lemma mask_refines R : refines R (put (map_trie (mask_cell (cells R)) (cells R)) R).
Proof.
  apply refines_same; auto. intros x. unfold val. fields. destruct (closed R); auto.
  apply plus_le, mask_tot.
Qed.

Lemma scaled_sum w n (bs : list factor) x e : (forall z, w z = z * n) ->
  sum (map (fun f => value f x) bs) = Fin e -> sum (map (fun f => units w f x) bs) = Fin (e * n).
Proof.
  intros W. revert e. induction bs as [|f bs IH]; intros e H; [simpl in *; injection H as <-; auto|].
  cbn [map] in *. rewrite sum_cons in *. destruct (value f x) as [a|] eqn:A; [|easy].
  destruct (sum (map (fun f => value f x) bs)) as [b|]; [|easy]. injection H as <-.
  rewrite (IH b eq_refl). unfold units. rewrite A. simpl. rewrite W. f_equal. lia.
Qed.

Lemma dual_sound m e edges bits b d : dual m e edges bits = Some (b, d) -> lower_bound m b.
Proof.
  unfold dual. destruct (every double bits) as [ds|]; [|easy].
  set (n := 2 ^ (e - finest e ds)). set (w := fun z => Z.shiftl z (e - finest e ds)). set (most := Z.max 0 (reach w m)).
  destruct (Z.ltb_spec 0 n) as [N|]; [|easy]. destruct (Z.leb_spec 0 (e - finest e ds)) as [NN|]; [|easy].
  cbn [andb]. destruct (load_sums w most m) as [R|] eqn:L; [|easy].
  destruct (prepared R edges) as [R0|] eqn:A0; [|easy]. destruct (all_edges _ _ _) as [R1|] eqn:A; [|easy].
  cbv zeta. set (R3 := put _ R1). assert (Q := settle_val R3). set (R2 := settle R3) in *. intros H. injection H as <- _.
  assert (F : refines R R2).
  { eapply refines_trans; [eapply prepared_refines, A0|].
    eapply refines_trans; [apply mask_refines|].
    eapply refines_trans; [eapply all_edges_refines, A|].
    eapply refines_trans; [apply mask_refines|]. apply refines_same; [apply Q|].
    intros x. rewrite (proj1 (proj2 Q)). auto. }
  assert (M : 0 <= most) by (unfold most; lia).
  assert (S := load_sums_spec w most M m R L). destruct F as [C F].
  destruct Q as (_ & _ & Q). intros x. unfold energy.
  destruct (sum (map (fun f => value f x) (blocks m))) as [z|] eqn:E; [|exact I]. simpl.
  assert (T : total_units w m x = Fin (z * n)) by (apply scaled_sum; auto; intros y; unfold w, n; now rewrite Z.shiftl_mul_pow2).
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
