(** The checker, and the theorem that it is sound. *)

Require Import ZArith List Lia Bool.
Require Import Statement Costs Reduce Presolve Tree Search Component Load Rounding Dual.
Import ListNotations.
Local Open Scope Z_scope.

(** Units of a search: a cost c is rounded down to c * num / den; [com] divides every sum of units
    below the cut; [only_hard] if finite costs count as 0. *)
Record scale := Scale { num : Z; den : Z; com : Z; only_hard : bool }.

Inductive phase :=
| Begin
| Hard
| Reducing (k : scale) (R : red)
| Searching (k : scale) (R : red) (p : part) (s : search)
| Proved (b : Z) (number : Z * Z).

Record state := State { at_ : phase; labels : option (list Z); last : option (list Z * list Z) }.

(** ** Records *)

Definition load_units (m : model) (e0 shift_ : Z) (numbers : list Z) : option (scale * red) :=
  match numbers with
  | [g; e; most] =>
      let u := e - shift_ in
      ensure ((1 <=? g) && (-5000 <? u) && (u <? 5000) && (0 <=? most) && (most <? half));
      let n := scale_num e0 u in
      let d := scale_den e0 g u in
      let w := units_fast e0 g u in
      let c := if forallb (fun f => exact_table e0 g u (snd f)) (blocks m)
               then common_of w most (blocks m) 0 else 1 in
      do R <- load w most m;
      Some (Scale n d c false, R)
  | _ => None
  end.

(** After HARD: each finite cost is 0. *)
Definition load_hard (m : model) (shift_ : Z) (numbers : list Z) : option (scale * red) :=
  match numbers with
  | [g; e; most] =>
      let u := e - shift_ in
      ensure ((1 <=? g) && (-5000 <? u) && (u <? 5000) && (0 <=? most) && (most <? half));
      do R <- load (fun _ => 0) most m; Some (Scale 1 1 1 true, R)
  | _ => None
  end.

Definition reduce (r : record) (R : red) : option red :=
  match r with
  | REMOVE v labels => do_remove v labels R
  | PERSISTENT labels amounts => do_persistent labels amounts R
  | SPLIT which => do_split which R
  | SUBSTITUTE which image => do_substitute which image R
  | ELIMINATE which => do_eliminate which R
  | SHIFT places amounts => do_shift places amounts R
  | _ => None
  end.

Definition search_step (r : record) (s : search) : option search :=
  match r with
  | CUT which => do_cut which s
  | DIVE which => do_dive which s
  | BRANCH what => do_branch what s
  | CLOSE => do_close s
  | LEAVE => do_leave s
  | STEP ws amounts vs drops reasons => on_state (step s ws amounts vs drops reasons) s
  | COMBINE own members sc => on_state (do_combine s own members sc) s
  | _ => None
  end.

Definition next_phase (m : model) (l : log) (r : record) (ph : phase) : option phase :=
  match ph, r with
  | Begin, LOAD numbers =>
      do (k, R) <- load_units m (exponent l) (shift l) numbers; Some (Reducing k R)
  | Begin, HARD => Some Hard
  | Hard, LOAD numbers => do (k, R) <- load_hard m (shift l) numbers; Some (Reducing k R)
  | Begin, DUAL _ _ bits =>
      do (b, d) <- dual m (exponent l) (edges l) bits; Some (Proved b d)
  | Reducing k R, COMPONENT vs fs =>
      do R' <- normalise R;
      do us <- every number vs;
      do gs <- every number fs;
      do (p, s) <- start R' us gs;
      Some (Searching k R' p s)
  | Reducing k R, _ => do R' <- reduce r R; Some (Reducing k R')
  | Searching k R p s, END => do b <- bound s; Some (Reducing k (ended R p b))
  | Searching k R p s, _ => do s' <- search_step r s; Some (Searching k R p s')
  | _, _ => None
  end.

Definition next_state (m : model) (l : log) (r : record) (st : state) : option state :=
  match last st, r, labels st with
  | Some _, _, _ => None
  | None, CONCLUDE what numbers, _ => Some (State (at_ st) (labels st) (Some (what, numbers)))
  | None, LABELS ls, None => Some (State (at_ st) (Some ls) None)
  | None, LABELS _, Some _ => None
  | None, _, None => do ph <- next_phase m l r (at_ st); Some (State ph None None)
  | None, _, Some _ => None
  end.

(** ** The bound *)

Definition red_bound (R : red) (more : Z) : Z :=
  if closed R then cut R else Z.min (cut R) (base R + more).

(** Rounded up to a multiple of [com], but not above the cut. *)
Definition round_up (k : scale) (R : red) (b : Z) : Z :=
  let c := Z.max 1 (com k) in Z.min (- ((- b) / c) * c) (Z.max b (cut R)).

(** A lower bound on the energy, rounded up to an integer, and without rounding as a dyadic number. *)
Definition in_costs (m : model) (e0 : Z) (k : scale) (R : red) (b : Z) : Z * (Z * Z) :=
  let n := round_up k R b * den k in
  (constant m - (- n) / num k, dplus (constant m, e0) (n, e0 - Z.log2 (num k))).

Inductive finding := Nothing | Lower (b : Z) (number : Z * Z) | No_labelling.

Definition found (m : model) (e0 : Z) (k : scale) (R : red) (b : Z) : finding :=
  if only_hard k then (if 1 <=? b then No_labelling else Nothing)
  else let '(c, d) := in_costs m e0 k R b in Lower c d.

Definition proved (m : model) (e0 : Z) (ph : phase) : finding :=
  match ph with
  | Begin | Hard => Nothing
  | Proved b d => Lower b d
  | Reducing k R =>
      match normalise R with
      | Some R' => found m e0 k R' (red_bound R' 0)
      | None => Nothing
      end
  | Searching k R p s =>
      match bound s with
      | Some b => found m e0 k R (red_bound R b)
      | None => Nothing
      end
  end.

(** The labelling of a log: one label for each variable. *)
Definition labelling_of (m : model) (ls : list Z) : option labelling :=
  ensure (Nat.eqb (length ls) (length (unary m)));
  do ns <- every small ls;
  let t := numbered ns in Some (fun v => match get v t with Some a => a | None => O end).

(** A labelling of finite cost, and its cost. *)
Definition given (m : model) (ls : list Z) : option (labelling * Z) :=
  do x <- labelling_of m ls;
  match energy m x with Fin c => Some (x, c) | Inf => None end.

(** What is concluded from a bound; the numbers of the log are doubles. *)
Definition conclude (e0 b : Z) (number : Z * Z) (lab : option (labelling * Z))
  (what : option (list Z * list Z)) : verdict :=
  match what, lab with
  | None, _ => Bound b
  | Some ([0], [n]), _ =>
      match double n with
      | Some d => if dle d number then Bound b else Rejected
      | None => Rejected
      end
  | Some ([1], [n]), Some (x, c) =>
      match double n with
      | Some d =>
          if dle (0, 0) d && dle (c, e0) (dplus number d)
          then (if c =? b then Optimal b x else Between b c x) else Rejected
      | None => Rejected
      end
  | Some ([3], [n; g]), _ =>
      match double n, double g with
      | Some d, Some e => if dle (0, 0) e && dle d (dplus number e) then Bound b else Rejected
      | _, _ => Rejected
      end
  | _, _ => Rejected
  end.

Fixpoint run (m : model) (l : log) (rs : list record) (st : state) : option state :=
  match rs with
  | [] => Some st
  | r :: rest => do st' <- next_state m l r st; run m l rest st'
  end.

(** Whether no cost of one model exceeds that of another one. *)
Definition cost_below (a b : cost) : bool :=
  match a, b with
  | _, Inf => true
  | Fin x, Fin y => x <=? y
  | Inf, Fin _ => false
  end.

Fixpoint table_below (t u : table) {struct t} : bool :=
  match t, u with
  | Val a, Val b => cost_below a b
  | Row l, Row k =>
      (fix go l k := match l, k with
                     | _, [] => true
                     | [], _ :: _ => false
                     | a :: l', b :: k' => table_below a b && go l' k'
                     end) l k
  | _, _ => false
  end.

Fixpoint factors_below (fs gs : list factor) : bool :=
  match fs, gs with
  | [], [] => true
  | (s, t) :: fs', (r, u) :: gs' =>
      (if list_eq_dec Pos.eq_dec s r then true else false) && table_below t u && factors_below fs' gs'
  | _, _ => false
  end.

Definition below (low m : model) : bool :=
  (constant low <=? constant m) && factors_below (blocks low) (blocks m).

Definition finish (low m : model) (l : log) (st : state) : verdict :=
  match proved low (exponent l) (at_ st), labels st with
  | Lower b d, None => conclude (exponent l) b d None (last st)
  | Lower b d, Some ls =>
      match given m ls with
      | Some xc => conclude (exponent l) b d (Some xc) (last st)
      | None => Rejected
      end
  | No_labelling, None => match last st with Some ([2], []) => Infeasible | _ => Rejected end
  | _, _ => Rejected
  end.

Definition initial : state := State Begin None None.

(** Bounds are those of [low], energies those of the model. *)
Definition check (low m : model) (l : log) : verdict :=
  if below low m then
    match run low l (records l) initial with
    | Some st => finish low m l st
    | None => Rejected
    end
  else Rejected.

(** ** Soundness *)

Definition loaded (m : model) (k : scale) (R : red) : Prop :=
  0 < num k /\ 0 < den k /\ exists U : labelling -> cost,
  (forall x, le (cmin (Fin (cut R)) (val R x)) (U x)) /\
  (forall x u, U x = Fin u -> cut R <= u \/ (com k | u)) /\
  (forall x e, energy m x = Fin e -> exists u, U x = Fin u /\
   (only_hard k = true -> u = 0) /\
   (only_hard k = false -> u * den k <= (e - constant m) * num k)).

Definition phase_ok (m : model) (ph : phase) : Prop :=
  match ph with
  | Begin | Hard => True
  | Proved b _ => lower_bound m b
  | Reducing k R => exists R0, loaded m k R0 /\ refines R0 R
  | Searching k R p s => exists R0, loaded m k R0 /\ refines R0 R /\
      (closed R = true \/
       exact (cells R) p /\ ok (tcost (node p)) s /\ forall x, le (Fin 0) (tcost (node p) x))
  end.

Lemma lift_sum w (bs : list factor) x e : sum (map (fun f => value f x) bs) = Fin e ->
  exists u, sum (map (fun f => units w f x) bs) = Fin u /\
  forall n d, (forall z, w z * d <= z * n) -> u * d <= e * n.
Proof.
  revert e. induction bs as [|f bs IH]; intros e H.
  - simpl in *. injection H as <-. exists 0. split; auto; lia.
  - cbn [map] in *. rewrite sum_cons in *. destruct (value f x) as [a|] eqn:A; [|easy].
    destruct (sum (map (fun f => value f x) bs)) as [b|]; [|easy]. injection H as <-.
    destruct (IH b eq_refl) as (u & U & B). rewrite U. unfold units. rewrite A. simpl.
    eexists. split; [reflexivity|]. intros n d W. specialize (B n d W). specialize (W a). lia.
Qed.

Lemma energy_sum m x e : energy m x = Fin e ->
  sum (map (fun f => value f x) (blocks m)) = Fin (e - constant m).
Proof.
  unfold energy. destruct (sum (map (fun f => value f x) (blocks m))); [|easy].
  simpl. intros [= <-]. f_equal. lia.
Qed.

Lemma load_units_ok m e0 s numbers k R : load_units m e0 s numbers = Some (k, R) -> loaded m k R.
Proof.
  unfold load_units. destruct numbers as [|g [|e [|most [|]]]]; try easy.
  destruct (_ && _) eqn:Q; [|easy].
  set (n := scale_num e0 (e - s)). set (d := scale_den e0 g (e - s)).
  set (w := units_fast e0 g (e - s)).
  destruct (load w most m) as [S|] eqn:L; [|easy]. intros [= <- <-].
  assert (G : 1 <= g /\ 0 <= most) by lia. destruct G as [G M].
  assert (N : 0 < n) by apply scale_num_pos. assert (D : 0 < d) by now apply scale_den_pos.
  split; [auto|split; [auto|]]. exists (total_units w m). cbn [num den com only_hard].
  assert (S' := load_spec w most M m S L).
  split; [intros x; apply S'|split].
  - intros x u U. destruct (proj2 (S' x) u U) as [H|H]; auto. right.
    match goal with |- (if ?b then _ else _ | u) => destruct b end; auto. apply Z.divide_1_l.
  - intros x z E. apply energy_sum in E. apply (lift_sum w) in E as (u & U & B).
    exists u. split; [auto|split; [easy|]]. intros _. apply B. intros y. unfold w.
    rewrite units_fast_of by auto. now apply units_below.
Qed.

Lemma load_hard_ok m s numbers k R : load_hard m s numbers = Some (k, R) -> loaded m k R.
Proof.
  unfold load_hard. destruct numbers as [|g [|e [|most [|]]]]; try easy.
  destruct (_ && _) eqn:Q; [|easy].
  destruct (load (fun _ => 0) most m) as [S|] eqn:L; [|easy]. intros [= <- <-].
  assert (M : 0 <= most) by lia.
  split; [simpl; lia|split; [simpl; lia|]]. exists (total_units (fun _ => 0) m).
  assert (S' := load_spec (fun _ => 0) most M m S L).
  split; [intros x; apply S'|split].
  - intros x u U. right. apply Z.divide_1_l.
  - intros x z E. apply energy_sum in E. apply (lift_sum (fun _ => 0)) in E as (u & U & B).
    exists u. split; [auto|split; [|easy]]. intros _.
    assert (H1 := B 0 1 ltac:(intros; lia)). assert (H2 := B 0 (-1) ltac:(intros; lia)). lia.
Qed.

Lemma reduce_refines r R R' : reduce r R = Some R' -> refines R R'.
Proof.
  destruct r; simpl; try easy.
  - apply do_remove_refines.
  - apply do_persistent_refines.
  - apply do_split_refines.
  - apply do_substitute_refines.
  - apply do_eliminate_refines.
  - apply do_shift_refines.
Qed.

Lemma search_step_ok C r s s' : search_step r s = Some s' -> ok C s -> ok C s'.
Proof.
  destruct r; simpl; try easy.
  - apply do_cut_ok.
  - apply do_dive_ok.
  - apply do_branch_ok.
  - apply do_close_ok.
  - apply do_leave_ok.
  - apply on_state_ok. intros P T T'. apply step_inv.
  - apply on_state_ok. intros P T T'. apply do_combine_inv.
Qed.

Lemma ended_closed R p b : closed R = true -> refines R (ended R p b).
Proof.
  intros C. apply refines_same; auto. intros x. unfold val. now rewrite C.
Qed.

Lemma next_phase_ok m l r ph ph' :
  next_phase m l r ph = Some ph' -> phase_ok m ph -> phase_ok m ph'.
Proof.
  destruct ph as [| |k R|k R p s|b d].
  - destruct r; simpl; try easy.
    + destruct (load_units m (exponent l) (shift l) numbers) as [[k R]|] eqn:L; [|easy].
      intros [= <-] _. exists R. split; [eapply load_units_ok, L|apply refines_refl].
    + destruct (dual m (exponent l) (edges l) bits) as [[b d]|] eqn:D; [|easy].
      intros [= <-] _. simpl. eapply dual_sound, D.
    + intros [= <-] _. exact I.
  - destruct r; simpl; try easy.
    destruct (load_hard m (shift l) numbers) as [[k R]|] eqn:L; [|easy].
    intros [= <-] _. exists R. split; [eapply load_hard_ok, L|apply refines_refl].
  - intros H (R0 & L & F).
    assert (G : forall R', reduce r R = Some R' -> phase_ok m (Reducing k R')).
    { intros R' E. exists R0. split; auto. eapply refines_trans; [apply F|eapply reduce_refines, E]. }
    destruct r; simpl in H, G;
      try (match type of H with (do _ <- ?a; _) = _ => destruct a eqn:E; [|easy] end;
           injection H as <-; now apply G); try easy.
    destruct (normalise R) as [R'|] eqn:N; [|easy]. destruct (every number variables) as [us|]; [|easy].
    destruct (every number factors) as [gs|]; [|easy].
    destruct (start R' us gs) as [[p s]|] eqn:S; [|easy]. injection H as <-. exists R0.
    split; [auto|split; [eapply refines_trans; [apply F|apply normalise_refines, N]|]].
    apply normalise_val in N as (_ & _ & [N|N]); [now left|]. right. now apply (start_ok R' us gs).
  - intros H (R0 & L & F & K).
    assert (G : forall s', search_step r s = Some s' -> phase_ok m (Searching k R p s')).
    { intros s' E. exists R0. split; [auto|split; [auto|]]. destruct K as [K|(K1 & K2 & K3)]; auto.
      right. split; [auto|split; auto]. eapply search_step_ok; eauto. }
    destruct r; simpl in H, G; try easy;
      try (match type of H with (do _ <- ?a; _) = _ => destruct a eqn:E; [|easy] end;
           injection H as <-; now apply G).
    destruct (bound s) as [b|] eqn:B; [|easy]. injection H as <-. exists R0. split; auto.
    eapply refines_trans; [apply F|]. destruct K as [K|(K1 & K2 & K3)]; [now apply ended_closed|].
    apply ended_refines; auto. intros x. eapply bound_le; eauto.
  - destruct r; simpl; easy.
Qed.

Definition says (m : model) (f : finding) : Prop :=
  match f with
  | Lower b _ => lower_bound m b
  | No_labelling => forall x, energy m x = Inf
  | Nothing => True
  end.

Lemma bound_units m e0 k R0 R b : loaded m k R0 -> refines R0 R ->
  b <= cut R -> (forall x, le (Fin b) (val R x)) ->
  says m (found m e0 k R b).
Proof.
  intros (N & D & U & U1 & U2 & U3) [C F] B V.
  assert (H : forall x u, U x = Fin u -> b <= u).
  { intros x u E. destruct (F x) as [x' X]. specialize (V x'). specialize (U1 x). rewrite E in U1.
    rewrite C in B. destruct (val R x'), (val R0 x); simpl in *; lia. }
  unfold found, in_costs. destruct (only_hard k) eqn:O.
  - destruct (Z.leb_spec 1 b); [|exact I]. intros x. destruct (energy m x) as [e|] eqn:E; auto.
    destruct (U3 x e E) as (u & Eu & Z & _). specialize (Z eq_refl). specialize (H x u Eu). lia.
  - intros x. destruct (energy m x) as [e|] eqn:E; [|exact I]. simpl.
    destruct (U3 x e E) as (u & Eu & _ & Z). specialize (Z eq_refl). specialize (H x u Eu).
    assert (Q : round_up k R b <= u).
    { unfold round_up. destruct (U2 x u Eu) as [K|[q K]]; [rewrite C; lia|].
      set (c := Z.max 1 (com k)). assert (c1 : 1 <= c) by lia.
      assert (- (- b / c) * c <= u); [|lia].
      destruct (Z.le_gt_cases 1 (com k)) as [G|G].
      - assert (c = com k) by lia. rewrite K in *. rewrite H0 in *.
        assert (- q <= - b / com k); [|nia]. apply Z.div_le_lower_bound; nia.
      - assert (c = 1) by lia. rewrite H0, Z.div_1_r. lia. }
    assert (W : round_up k R b * den k <= (e - constant m) * num k) by nia.
    assert (- (e - constant m) <= - (round_up k R b * den k) / num k); [|lia].
    apply Z.div_le_lower_bound; lia.
Qed.

Lemma proved_sound m e0 ph : phase_ok m ph -> says m (proved m e0 ph).
Proof.
  destruct ph as [| |k R|k R p s|b d]; simpl; auto.
  - intros (R0 & L & F). destruct (normalise R) as [R'|] eqn:N; [|exact I].
    eapply bound_units; [apply L|eapply refines_trans; [apply F|apply normalise_refines, N]| |].
    + unfold red_bound. destruct (closed R'); lia.
    + intros x. apply normalise_val in N as (_ & _ & [N|N]); unfold red_bound, val; [now rewrite N|].
      destruct (closed R'); [exact I|].
      assert (P : le (Fin 0) (tot x (cells R'))) by (apply total_nonneg; intros; eapply N; eauto).
      destruct (tot x (cells R')); simpl in *; auto. lia.
  - intros (R0 & L & F & K). destruct (bound s) as [b|] eqn:B; [|exact I].
    eapply bound_units; [apply L|apply F| |].
    + unfold red_bound. destruct (closed R); lia.
    + intros x. unfold red_bound, val. destruct (closed R) eqn:Q; [exact I|].
      destruct K as [K|(K1 & K2 & K3)]; [easy|].
      assert (T := bound_le _ K3 s b x B K2). destruct K1 as (_ & _ & E & _ & P & _).
      rewrite <- (E x).
      assert (Z : le (Fin 0) (tot x (left p))) by (apply total_nonneg; intros; eapply P; eauto).
      destruct (tcost (node p) x), (tot x (left p)); simpl in *; auto. lia.
Qed.

Lemma run_ok m l rs : forall st st', run m l rs st = Some st' ->
  phase_ok m (at_ st) -> phase_ok m (at_ st').
Proof.
  induction rs as [|r rs IH]; simpl; intros st st' H P; [now injection H as <-|].
  destruct (next_state m l r st) as [s1|] eqn:N; [|easy]. eapply IH; eauto. clear H IH.
  unfold next_state in N. destruct (last st); [easy|].
  destruct r, (labels st); try easy;
    try (match type of N with (do _ <- ?a; _) = _ => destruct a eqn:E; [|easy] end;
         injection N as <-; eapply next_phase_ok; eauto);
    injection N as <-; auto.
Qed.

Lemma conclude_sound m e0 b d lab what : lower_bound m b ->
  match lab with Some (x, c) => energy m x = Fin c | None => True end ->
  holds m (conclude e0 b d lab what).
Proof.
  intros B L. unfold conclude.
  repeat match goal with
  | |- holds m (match ?a with _ => _ end) => destruct a eqn:?
  end; simpl; auto.
  split; auto. match goal with H : (_ =? _) = true |- _ => apply Z.eqb_eq in H; congruence end.
Qed.

Lemma given_energy m ls x c : given m ls = Some (x, c) -> energy m x = Fin c.
Proof.
  unfold given. destruct (labelling_of m ls) as [y|]; [|easy].
  destruct (energy m y) eqn:E; [|easy]. now intros [= <- <-].
Qed.

Lemma table_below_entry : forall idx t u, table_below t u = true -> le (entry t idx) (entry u idx).
Proof.
  induction idx as [|a idx IH]; intros [c|l] [d|k] H; simpl in *; try easy.
  - now destruct c, d; simpl in *; lia.
  - revert l a H. induction k as [|b k IHk]; intros l a H.
    + replace (nth_error [] a) with (@None table) by now destruct a.
      now destruct (match nth_error l a with Some row => entry row idx | None => Inf end).
    + destruct l as [|e l]; [easy|]. apply andb_prop in H as [H1 H2].
      destruct a as [|a]; simpl; [now apply IH|]. now apply IHk.
Qed.

Lemma factors_below_sum x : forall fs gs, factors_below fs gs = true ->
  le (sum (map (fun f => value f x) fs)) (sum (map (fun f => value f x) gs)).
Proof.
  induction fs as [|[s t] fs IH]; intros [|[r u] gs] H; simpl in *; try easy; try lia.
  apply andb_prop in H as [H F]. apply andb_prop in H as [S T].
  destruct (list_eq_dec Pos.eq_dec s r) as [->|]; [|easy].
  apply (table_below_entry (map x r)) in T. apply IH in F. unfold value at 1 3. simpl.
  destruct (entry t (map x r)), (entry u (map x r)), (sum (map (fun f => value f x) fs)),
    (sum (map (fun f => value f x) gs)); simpl in *; auto; lia.
Qed.

Lemma below_energy low m : below low m = true -> forall x, le (energy low x) (energy m x).
Proof.
  unfold below, energy. intros H x. apply andb_prop in H as [C F].
  apply (factors_below_sum x) in F.
  destruct (sum (map (fun f => value f x) (blocks low))), (sum (map (fun f => value f x) (blocks m)));
    simpl in *; auto; lia.
Qed.

Lemma says_below low m f : below low m = true -> says low f -> says m f.
Proof.
  intros B. assert (E := below_energy low m B). destruct f as [|b d|]; simpl; auto.
  - intros S x. specialize (S x). specialize (E x).
    destruct (energy low x), (energy m x); simpl in *; auto; lia.
  - intros S x. specialize (S x). specialize (E x). rewrite S in E. now destruct (energy m x).
Qed.

(** The checker is sound. *)
Theorem check_sound : sound check.
Proof.
  intros low m l. unfold check. destruct (below low m) eqn:B; [|exact I].
  destruct (run low l (records l) initial) as [st|] eqn:R; [|exact I].
  apply run_ok in R; [|exact I]. apply (proved_sound low (exponent l)) in R.
  apply (says_below low m _ B) in R. unfold finish.
  destruct (proved low (exponent l) (at_ st)) as [|b d|]; simpl in R.
  - exact I.
  - destruct (labels st) as [ls|]; [|now apply conclude_sound].
    destruct (given m ls) as [[x c]|] eqn:G; [|exact I]. apply conclude_sound; auto.
    now apply given_energy in G.
  - destruct (labels st); [exact I|].
    repeat match goal with |- holds m (match ?a with _ => _ end) => destruct a end;
      try exact I; exact R.
Qed.

(** The theorem, verdict by verdict. *)
Corollary bound_is_lower low m l b : check low m l = Bound b ->
  forall x, le (Fin b) (energy m x).
Proof. intros H. assert (S := check_sound low m l). now rewrite H in S. Qed.

Corollary optimal_is_optimal low m l b x : check low m l = Optimal b x ->
  energy m x = Fin b /\ forall y, le (Fin b) (energy m y).
Proof. intros H. assert (S := check_sound low m l). now rewrite H in S. Qed.

Corollary infeasible_is_infeasible low m l : check low m l = Infeasible ->
  forall x, energy m x = Inf.
Proof. intros H. assert (S := check_sound low m l). now rewrite H in S. Qed.
