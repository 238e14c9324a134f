(** A search over a component: open nodes, dives, and the bound that they prove. *)

Require Import ZArith List Lia Bool.
Require Import Statement Costs Reduce Tree.
Import ListNotations.
Local Open Scope Z_scope.

Definition path := list decision.

(** A decision of a dive: the state, the path and the decision itself. *)
Record level := Level { lstate : st; lpath : path; ldecision : decision }.

Record dive := Dive { dbound : Z; dpath : path; dstate : st; levels : list level }.

(** [place] has the variables of the component, [marks] all their labels, in order. *)
Record search := Search {
  place : trie positive; marks : trie (positive * nat);
  root : st; current : option dive; open : trie (Z * path); opened : positive; up : Z }.

Definition with_root (T : st) (s : search) : search :=
  Search (place s) (marks s) T (current s) (open s) (opened s) (up s).
Definition with_dive (d : option dive) (s : search) : search :=
  Search (place s) (marks s) (root s) d (open s) (opened s) (up s).

(** ** STEP *)

Fixpoint removals (s : search) (T : st) (reasons : list Z) : option st :=
  match reasons with
  | [] => Some T
  | r :: rest =>
      let room := up s - lower T in
      if r <? 0 then
        do k <- number (-1 - r);
        do (v, a) <- get k (marks s);
        ensure (enough_own T v a room);
        do T' <- kill v a T;
        removals s T' rest
      else
        do (fa, a) <- word T r;
        let '(f, axis) := fa in
        do g <- get f (facs T);
        do v <- nth_error (scope g) axis;
        ensure (enough_word T g axis a v room);
        do T' <- kill v a T;
        removals s T' rest
  end.

Lemma room_enough T room up x :
  le (Fin room) (tcost T x) -> room = up - lower T -> le (Fin up) (plus (Fin (lower T)) (tcost T x)).
Proof. intros H ->. destruct (tcost T x); simpl in *; auto. lia. Qed.

Lemma removals_inv C P s reasons : forall T T',
  removals s T reasons = Some T' -> Inv C (up s) P T -> Inv C (up s) P T'.
Proof.
  induction reasons as [|r reasons IH]; intros T T' H I; [now injection H as <-|].
  cbn [removals] in H. cbv zeta in H. assert (N := proj1 I).
  destruct (r <? 0).
  - destruct (number (-1 - r)) as [k|]; [|easy]. destruct (get k (marks s)) as [[v a]|]; [|easy].
    destruct (enough_own T v a (up s - lower T)) eqn:E; [|easy].
    destruct (kill v a T) as [U|] eqn:K; [|easy]. apply (IH _ _ H). clear H.
    assert (L : exists l, var T v = Some l).
    { unfold kill in K. destruct (var T v); [eauto|easy]. }
    destruct L as [l L]. eapply kill_inv; eauto. intros x A X.
    eapply room_enough; eauto. eapply enough_own_le; eauto.
  - destruct (word T r) as [[[f axis] a]|]; [|easy].
    destruct (get f (facs T)) as [g|] eqn:G; [|easy].
    destruct (nth_error (scope g) axis) as [v|] eqn:V; [|easy].
    destruct (enough_word T g axis a v (up s - lower T)) eqn:E; [|easy].
    destruct (kill v a T) as [U|] eqn:K; [|easy]. apply (IH _ _ H). clear H.
    eapply kill_inv; eauto. intros x A X.
    eapply room_enough; eauto. eapply enough_word_le; eauto.
Qed.

Fixpoint zip {A B} (l : list A) (k : list B) : option (list (A * B)) :=
  match l, k with
  | [], [] => Some []
  | a :: l', b :: k' => do r <- zip l' k'; Some ((a, b) :: r)
  | _, _ => None
  end.

Definition variable (s : search) (z : Z) : option positive :=
  do k <- number z; get k (place s).

Definition step (s : search) (ws amounts vs drops reasons : list Z) (T : st) : option st :=
  do wa <- zip ws amounts;
  do ms <- every (find_move T) wa;
  do us <- every (variable s) vs;
  do ps <- zip us drops;
  do T' <- step_costs T ms ps;
  removals s T' reasons.

Definition do_combine (s : search) (own members sc : list Z) (T : st) : option st :=
  do o <- every (variable s) own;
  do m <- every number members;
  do c <- every (variable s) sc;
  ensure (match m with [] => false | _ => true end);
  combine_ o m c T.

(** A step on the current node, or on the root outside of a dive. *)
Definition on_state (f : st -> option st) (s : search) : option search :=
  match current s with
  | Some d =>
      do T <- f (dstate d);
      Some (with_dive (Some (Dive (dbound d) (dpath d) T (levels d))) s)
  | None => do T <- f (root s); Some (with_root T s)
  end.

(** ** Nodes *)

Fixpoint restricts (ds : path) (T : st) : option st :=
  match ds with
  | [] => Some T
  | d :: rest => do T' <- restrict d T; restricts rest T'
  end.

Definition do_cut (which : list Z) (s : search) : option search :=
  match which with
  | [c] =>
      ensure (Z.abs c <=? half);
      Some (Search (place s) (marks s) (root s) (current s) (open s) (opened s) (Z.min (up s) c))
  | _ => None
  end.

Definition do_dive (which : list Z) (s : search) : option search :=
  match which, current s with
  | [z], None =>
      do k <- number z;
      do (b, p) <- get k (open s);
      do T <- restricts p (root s);
      Some (Search (place s) (marks s) (root s) (Some (Dive b p T []))
             (set k None (open s)) (opened s) (up s))
  | _, _ => None
  end.

Definition do_branch (what : list Z) (s : search) : option search :=
  match what, current s with
  | [z; kind; a], Some d =>
      do v <- variable s z;
      let e := Decision v kind a in
      ensure (valid e);
      do T <- restrict e (dstate d);
      Some (with_dive (Some (Dive (dbound d) (e :: dpath d) T
                              (Level (dstate d) (dpath d) e :: levels d))) s)
  | _, _ => None
  end.

Definition no_label (T : st) : bool :=
  match dead T with
  | Some v => match var T v with Some l => negb (existsb fst l) | None => false end
  | None => false
  end.

Definition do_close (s : search) : option search :=
  do d <- current s;
  ensure ((up s <=? lower (dstate d)) || no_label (dstate d));
  match levels d with
  | [] => Some (with_dive None s)
  | l :: rest =>
      let e := negated (ldecision l) in
      do T <- restrict e (lstate l);
      Some (with_dive (Some (Dive (dbound d) (e :: lpath l) T rest)) s)
  end.

Definition add_open (s : search) (b : Z) (p : path) : option search :=
  let n := Pos.succ (opened s) in
  let o := if b <? up s then set n (Some (b, p)) (open s) else open s in
  match get n (open s) with
  | Some _ => None
  | None => Some (Search (place s) (marks s) (root s) (current s) o n (up s))
  end.

(** From the first decision, which is the last one of the list, to the current node. *)
Fixpoint add_levels (b : Z) (ls : list level) (s : search) : option search :=
  match ls with
  | [] => Some s
  | l :: rest =>
      do s' <- add_levels b rest s;
      add_open s' (Z.max (lower (lstate l)) b) (negated (ldecision l) :: lpath l)
  end.

Definition do_leave (s : search) : option search :=
  do d <- current s;
  do s1 <- add_levels (dbound d) (levels d) s;
  do s2 <- add_open s1 (Z.max (lower (dstate d)) (dbound d)) (dpath d);
  Some (with_dive None s2).

(** The smallest bound of all open nodes. *)
Fixpoint least_open (low : Z) (t : trie (Z * path)) : cost :=
  match t with
  | Leaf => Inf
  | Node l o r =>
      cmin (match o with Some (b, _) => Fin (Z.max b low) | None => Inf end)
        (cmin (least_open low l) (least_open low r))
  end.

Definition bound (s : search) : option Z :=
  match current s with
  | Some _ => None
  | None =>
      let nodes := if no_label (root s) then Inf else least_open (lower (root s)) (open s) in
      match cmin (Fin (up s)) nodes with
      | Fin b => Some (Z.max 0 b)
      | Inf => None
      end
  end.

(** ** Soundness *)

Section Sound.
Variable C : labelling -> cost.
Hypothesis C_nonneg : forall x, le (Fin 0) (C x).

Definition least_of (up b : Z) (p : path) : Prop :=
  forall x, sats x p -> le (Fin up) (C x) \/ le (Fin b) (C x).

Definition dive_ok (up : Z) (d : dive) : Prop :=
  Inv C up (fun x => sats x (dpath d)) (dstate d) /\ least_of up (dbound d) (dpath d) /\
  Forall (fun l => Inv C up (fun x => sats x (lpath l)) (lstate l) /\
                   least_of up (dbound d) (lpath l) /\ valid (ldecision l) = true) (levels d).

Definition covers (s : search) (x : labelling) : Prop :=
  le (Fin (up s)) (C x) \/
  (exists k b p, get k (open s) = Some (b, p) /\ sats x p) \/
  match current s with
  | None => False
  | Some d =>
      sats x (dpath d) \/ Exists (fun l => sats x (lpath l) /\ ~ sat x (ldecision l)) (levels d)
  end.

Definition ok (s : search) : Prop :=
  Inv C (up s) (fun _ => True) (root s) /\
  (forall k b p, get k (open s) = Some (b, p) -> least_of (up s) b p) /\
  (forall d, current s = Some d -> dive_ok (up s) d) /\
  (forall x, covers s x).

Lemma Inv_weaken up up' (P Q : labelling -> Prop) T :
  up' <= up -> (forall x, Q x -> P x) -> Inv C up P T -> Inv C up' Q T.
Proof.
  intros U I [N H]. split; auto. intros x q. destruct (H x (I x q)) as [L|L]; auto.
  left. destruct (C x); simpl in *; auto. lia.
Qed.

Lemma Inv_up up up' P T : up' <= up -> Inv C up P T -> Inv C up' P T.
Proof. intros U. now apply Inv_weaken. Qed.

Lemma least_weaken up up' b p : up' <= up -> least_of up b p -> least_of up' b p.
Proof.
  intros U H x S. destruct (H x S) as [L|L]; auto. left. destruct (C x); simpl in *; auto. lia.
Qed.

Lemma on_state_ok f s s' :
  (forall P T T', f T = Some T' -> Inv C (up s) P T -> Inv C (up s) P T') ->
  on_state f s = Some s' -> ok s -> ok s'.
Proof.
  intros F H (R & O & D & V). unfold on_state in H. destruct (current s) as [d|] eqn:E.
  - destruct (f (dstate d)) as [T|] eqn:G; [|easy]. apply some_inj in H. subst s'.
    destruct (D d eq_refl) as (D1 & D2 & D3).
    split; [exact R|split; [exact O|split]].
    + intros e He. injection He as <-. split; [|split]; auto. simpl. eapply F; eauto.
    + intros x. specialize (V x). unfold covers in *. rewrite E in V. exact V.
  - destruct (f (root s)) as [T|] eqn:G; [|easy]. apply some_inj in H. subst s'.
    split; [simpl; eapply F; eauto|split; [exact O|split]].
    + intros d Hd. simpl in Hd. congruence.
    + intros x. exact (V x).
Qed.

Lemma step_inv s ws amounts vs drops reasons P T T' :
  step s ws amounts vs drops reasons T = Some T' -> Inv C (up s) P T -> Inv C (up s) P T'.
Proof.
  unfold step. destruct (zip ws amounts); [|easy]. destruct (every (find_move T) _); [|easy].
  destruct (every (variable s) vs); [|easy]. destruct (zip _ drops); [|easy].
  destruct (step_costs T _ _) as [U|] eqn:E; [|easy]. intros H I.
  eapply removals_inv; eauto. eapply step_costs_inv; eauto.
Qed.

Lemma do_combine_inv s own members sc P T T' :
  do_combine s own members sc T = Some T' -> Inv C (up s) P T -> Inv C (up s) P T'.
Proof.
  unfold do_combine. destruct (every (variable s) own); [|easy].
  destruct (every number members) as [m|]; [|easy]. destruct (every (variable s) sc); [|easy].
  destruct m; [easy|]. apply combine_inv.
Qed.

Lemma do_cut_ok which s s' : do_cut which s = Some s' -> ok s -> ok s'.
Proof.
  unfold do_cut. destruct which as [|c [|]]; try easy. destruct (_ <=? half); [|easy].
  intros H (R & O & D & V). apply some_inj in H. subst s'.
  assert (U : Z.min (up s) c <= up s) by lia.
  split; [simpl; eapply Inv_up; eauto|split; [|split]].
  - intros k b p G. simpl in *. eapply least_weaken; eauto.
  - intros d E. simpl in *. destruct (D d E) as (D1 & D2 & D3).
    split; [eapply Inv_up; eauto|split; [eapply least_weaken; eauto|]].
    eapply Forall_impl; [|apply D3]. simpl. intros l (A & B & Q).
    split; [eapply Inv_up; eauto|split; [eapply least_weaken; eauto|auto]].
  - intros x. destruct (V x) as [L|[H|H]]; [left|right; left; exact H|right; right; exact H].
    simpl. destruct (C x); simpl in *; auto. lia.
Qed.

Lemma restricts_inv P ds : forall T T' up, restricts ds T = Some T' ->
  Inv C up P T -> Inv C up (fun x => P x /\ sats x ds) T'.
Proof.
  revert P. induction ds as [|d ds IH]; simpl; intros P T T' up H I.
  - injection H as <-. eapply Inv_weaken; [| |apply I]; [lia|]. tauto.
  - destruct (restrict d T) as [U|] eqn:E; [|easy]. assert (E' := restrict_inv C up P d T U E I).
    apply (IH _ _ _ _ H) in E'. eapply Inv_weaken; [| |apply E']; [lia|]. cbv beta.
    intros x [Px S]. inversion S; subst. auto.
Qed.

Lemma do_dive_ok which s s' : do_dive which s = Some s' -> ok s -> ok s'.
Proof.
  unfold do_dive. destruct which as [|z [|]]; try easy. destruct (current s) eqn:E; [easy|].
  destruct (number z) as [k|]; [|easy]. destruct (get k (open s)) as [[b p]|] eqn:G; [|easy].
  destruct (restricts p (root s)) as [T|] eqn:T_; [|easy]. intros H (R & O & D & V).
  apply some_inj in H. subst s'. split; [exact R|split; [|split]].
  - intros j c q J. simpl in J. apply set_none_get in J. eapply O, J.
  - intros d Hd. simpl in Hd. injection Hd as <-. split; [|split].
    + simpl. apply (restricts_inv (fun _ => True)) with (up := up s) in T_; auto.
      eapply Inv_weaken; [| |apply T_]; [simpl; lia|]. cbv beta. auto.
    + eapply O, G.
    + constructor.
  - intros x. specialize (V x). unfold covers in *. simpl. rewrite E in V.
    destruct V as [L|[(j & c & q & J & S)|[]]]; auto.
    destruct (Pos.eq_dec j k) as [->|N].
    + rewrite G in J. injection J as <- <-. auto.
    + right. left. exists j, c, q. rewrite get_set_other; auto.
Qed.

Lemma sat_dec x d : sat x d \/ ~ sat x d.
Proof. unfold sat. destruct (allows d (x (dvar d))); auto. Qed.

Lemma do_branch_ok what s s' : do_branch what s = Some s' -> ok s -> ok s'.
Proof.
  unfold do_branch. destruct what as [|z [|kind [|a [|]]]]; try easy.
  destruct (current s) as [d|] eqn:E; [|easy]. destruct (variable s z) as [v|]; [|easy].
  set (e := Decision v kind a). destruct (valid e) eqn:VE; [|easy].
  destruct (restrict e (dstate d)) as [T|] eqn:T_; [|easy]. intros H (R & O & D & V).
  apply some_inj in H. subst s'. destruct (D d E) as (D1 & D2 & D3).
  split; [exact R|split; [exact O|split]].
  - intros f Hf. simpl in Hf. injection Hf as <-. split; [|split].
    + simpl. apply (restrict_inv _ _ _ _ _ _ T_) in D1. eapply Inv_weaken; [| |apply D1]; [lia|].
      intros x S. inversion S; auto.
    + intros x S. inversion S. apply D2. auto.
    + constructor; auto.
  - intros x. specialize (V x). unfold covers in *. simpl. rewrite E in V.
    destruct V as [L|[L|[S|S]]]; auto.
    right. right. destruct (sat_dec x e) as [Q|Q].
    + left. constructor; auto.
    + right. apply Exists_cons_hd. auto.
Qed.

Lemma no_label_dead T x : no_label T = true -> ~ alive T x.
Proof.
  unfold no_label. destruct (dead T) as [v|]; [|easy]. destruct (var T v) as [l|] eqn:L; [|easy].
  intros H A. apply negb_true_iff in H. apply var_get in L. destruct (A _ _ L) as [_ [c E]].
  cbn [snd] in E. apply nth_error_In in E.
  assert (existsb fst l = true); [|congruence]. apply existsb_exists. exists (true, c). auto.
Qed.

Lemma closed_node T u (P : labelling -> Prop) x :
  (u <=? lower T) || no_label T = true -> Inv C u P T -> P x -> le (Fin u) (C x).
Proof.
  intros H [N I] Px. destruct (I x Px) as [L|[A L]]; auto.
  apply orb_true_elim in H as [H|H]; [|now apply no_label_dead in A].
  apply Z.leb_le in H. assert (Q := nn_nonneg _ _ N A).
  destruct (tcost T x), (C x); simpl in *; auto; lia.
Qed.

Lemma do_close_ok s s' : do_close s = Some s' -> ok s -> ok s'.
Proof.
  unfold do_close. destruct (current s) as [d|] eqn:E; [|easy].
  destruct (_ || _) eqn:Q; [|easy]. intros H (R & O & D & V). destruct (D d E) as (D1 & D2 & D3).
  assert (K : forall x, sats x (dpath d) -> le (Fin (up s)) (C x)).
  { intros x S. exact (closed_node _ _ (fun x => sats x (dpath d)) x Q D1 S). }
  destruct (levels d) as [|l rest] eqn:LV.
  - apply some_inj in H. subst s'. split; [exact R|split; [exact O|split]]; [easy|].
    intros x. specialize (V x). unfold covers in *. simpl. rewrite E, LV in V.
    destruct V as [L|[L|[S|S]]]; [now left|now right; left|left; now apply K|inversion S].
  - destruct (restrict (negated (ldecision l)) (lstate l)) as [T|] eqn:T_; [|easy].
    apply some_inj in H. subst s'. inversion D3 as [|? ? (A & B & W) D3']; subst.
    split; [exact R|split; [exact O|split]].
    + intros f Hf. simpl in Hf. injection Hf as <-. split; [|split]; auto.
      * simpl. apply (restrict_inv _ _ _ _ _ _ T_) in A. eapply Inv_weaken; [| |apply A]; [lia|].
        intros x S. inversion S; auto.
      * intros x S. inversion S. apply B. auto.
    + intros x. specialize (V x). unfold covers in *. simpl. rewrite E, LV in V.
      destruct V as [L|[L|[S|S]]]; [now left|now right; left|left; now apply K|]. right. right.
      inversion S as [? ? [S1 S2]|? ? S']; subst; auto.
      left. constructor; auto. now apply negated_sat.
Qed.

(** Open nodes are added: none is lost, and the new ones are covered. *)
Definition extends (s s' : search) : Prop :=
  up s' = up s /\ root s' = root s /\ current s' = current s /\
  (forall k c, get k (open s) = Some c -> get k (open s') = Some c) /\
  ((forall k b p, get k (open s) = Some (b, p) -> least_of (up s) b p) ->
   forall k b p, get k (open s') = Some (b, p) -> least_of (up s) b p).

Definition listed_in (s : search) (x : labelling) : Prop :=
  le (Fin (up s)) (C x) \/ exists k b p, get k (open s) = Some (b, p) /\ sats x p.

Lemma add_open_extends s b p s' : add_open s b p = Some s' -> least_of (up s) b p ->
  extends s s' /\ forall x, sats x p -> listed_in s' x.
Proof.
  unfold add_open. destruct (get (Pos.succ (opened s)) (open s)) eqn:G; [easy|]. intros H L.
  apply some_inj in H. subst s'. split; [split; [auto|split; [auto|split; [auto|split]]]|]; simpl.
  - intros k c K. destruct (b <? up s); auto. rewrite get_set_other; auto. congruence.
  - intros O k c q. destruct (b <? up s); [|eauto].
    destruct (Pos.eq_dec k (Pos.succ (opened s))) as [->|N].
    + rewrite get_set_same. intros [= <- <-]. auto.
    + rewrite get_set_other; eauto.
  - intros x S. unfold listed_in. simpl. destruct (Z.ltb_spec b (up s)).
    + right. exists (Pos.succ (opened s)), b, p. split; auto. apply get_set_same.
    + left. destruct (L x S) as [Q|Q]; auto. destruct (C x); simpl in *; auto. lia.
Qed.

Lemma extends_trans s t u : extends s t -> extends t u -> extends s u.
Proof.
  intros (A1 & A2 & A3 & A4 & A5) (B1 & B2 & B3 & B4 & B5).
  split; [congruence|split; [congruence|split; [congruence|split; [auto|]]]].
  intros O. rewrite A1 in B5. exact (B5 (A5 O)).
Qed.

Lemma listed_extends s s' x : extends s s' -> listed_in s x -> listed_in s' x.
Proof.
  intros (A1 & A2 & A3 & A4 & A5) [L|(k & b & p & G & S)]; [left; congruence|].
  right. exists k, b, p. auto.
Qed.

Lemma node_least up P T b p : Inv C up P T -> (forall x, sats x p -> P x) ->
  least_of up b p -> least_of up (Z.max (lower T) b) p.
Proof.
  intros [N I] W L x S. destruct (L x S) as [Q|Q]; auto.
  destruct (I x (W x S)) as [R|[A R]]; auto. right.
  assert (Z := nn_nonneg _ _ N A). destruct (tcost T x), (C x); simpl in *; auto; lia.
Qed.

Lemma add_levels_extends b ls : forall s s', add_levels b ls s = Some s' ->
  Forall (fun l => Inv C (up s) (fun x => sats x (lpath l)) (lstate l) /\
                   least_of (up s) b (lpath l) /\ valid (ldecision l) = true) ls ->
  extends s s' /\
  forall x, Exists (fun l => sats x (lpath l) /\ ~ sat x (ldecision l)) ls -> listed_in s' x.
Proof.
  induction ls as [|l ls IH]; simpl; intros s s' H F.
  - injection H as <-. split; [|intros x E; inversion E].
    split; [auto|split; [auto|split; [auto|split; auto]]].
  - destruct (add_levels b ls s) as [t|] eqn:T; [|easy]. inversion F as [|? ? (A & B & W) F']; subst.
    destruct (IH _ _ T F') as [E X]. assert (U := proj1 E).
    apply add_open_extends in H as [E' X'].
    + split; [eapply extends_trans; eauto|]. intros x S. inversion S as [? ? [S1 S2]|? ? S']; subst.
      * apply X'. constructor; auto. now apply negated_sat.
      * eapply listed_extends; eauto.
    + rewrite U. eapply node_least; [exact A| |].
      * intros x S. inversion S. auto.
      * intros x S. inversion S. apply B. auto.
Qed.

Lemma do_leave_ok s s' : do_leave s = Some s' -> ok s -> ok s'.
Proof.
  unfold do_leave. destruct (current s) as [d|] eqn:E; [|easy].
  destruct (add_levels (dbound d) (levels d) s) as [t|] eqn:T; [|easy].
  destruct (add_open t _ (dpath d)) as [u|] eqn:U; [|easy]. intros H (R & O & D & V).
  apply some_inj in H. subst s'. destruct (D d E) as (D1 & D2 & D3).
  destruct (add_levels_extends _ _ _ _ T D3) as [E1 X1].
  assert (E1u := proj1 E1).
  apply add_open_extends in U as [E2 X2].
  2:{ rewrite E1u. eapply node_least; eauto. }
  assert (EX := extends_trans _ _ _ E1 E2). destruct EX as (A1 & A2 & A3 & A4 & A5).
  split; [|split; [|split]].
  - simpl. rewrite A1, A2. exact R.
  - simpl. rewrite A1. exact (A5 O).
  - easy.
  - intros x. assert (L : listed_in u x).
    { specialize (V x). unfold covers in V. rewrite E in V. destruct V as [L|[L|[S|S]]].
      - left. congruence.
      - right. destruct L as (k & b & p & G & S). exists k, b, p. auto.
      - apply X2, S.
      - eapply listed_extends; eauto. }
    unfold covers. simpl. destruct L as [L|L]; auto.
Qed.

Lemma least_open_le low t k b p : get k t = Some (b, p) -> le (least_open low t) (Fin (Z.max b low)).
Proof.
  revert k. induction t as [|l IHl o r IHr]; intros k G; [destruct k; easy|].
  destruct k as [k|k|]; simpl in G; cbn [least_open].
  - eapply le_trans; [apply cmin_r|]. eapply le_trans; [apply cmin_r|]. eauto.
  - eapply le_trans; [apply cmin_r|]. eapply le_trans; [apply cmin_l|]. eauto.
  - subst o. apply cmin_l.
Qed.

Lemma bound_le s b x : bound s = Some b -> ok s -> le (Fin b) (C x).
Proof.
  unfold bound. destruct (current s) eqn:E; [easy|]. intros H (R & O & D & V).
  assert (L : le (cmin (Fin (up s))
    (if no_label (root s) then Inf else least_open (lower (root s)) (open s))) (C x)).
  { destruct (no_label (root s)) eqn:N.
    - eapply le_trans; [apply cmin_l|]. eapply closed_node; [|apply R|exact I].
      rewrite N. apply orb_true_r.
    - specialize (V x). unfold covers in V. rewrite E in V.
      destruct V as [L|[(k & c & p & G & S)|[]]]; [eapply le_trans; [apply cmin_l|auto]|].
      destruct (O _ _ _ G x S) as [Q|Q]; [eapply le_trans; [apply cmin_l|auto]|].
      destruct R as [NN R]. destruct (R x I) as [Z|[A Z]]; [eapply le_trans; [apply cmin_l|auto]|].
      eapply le_trans; [apply cmin_r|]. eapply le_trans; [eapply least_open_le, G|].
      assert (P := nn_nonneg _ _ NN A). destruct (tcost (root s) x), (C x); simpl in *; auto; lia. }
  assert (P := C_nonneg x). destruct (cmin _ _) as [c|]; [|easy]. injection H as <-.
  destruct (C x); simpl in *; auto. lia.
Qed.

End Sound.
