(** Costs, tables and tries, and what the proofs need to know about them. *)

Require Import ZArith List Lia Bool.
Require Import Statement.
Import ListNotations.
Local Open Scope Z_scope.

(** ** Costs *)

Definition cmin (a b : cost) : cost :=
  match a, b with
  | Fin x, Fin y => Fin (Z.min x y)
  | Fin x, Inf => Fin x
  | Inf, b => b
  end.

Definition leb (a b : cost) : bool :=
  match a, b with
  | _, Inf => true
  | Fin x, Fin y => x <=? y
  | Inf, Fin _ => false
  end.

Definition minus (c : cost) (d : Z) : cost :=
  match c with Fin x => Fin (x - d) | Inf => Inf end.

Arguments plus a b : simpl nomatch.
Arguments minus c d : simpl nomatch.
Arguments cmin a b : simpl nomatch.

(** Generalise a term of type [cost], then split it into its two forms. *)
Ltac split_cost t :=
  let e := fresh "e" in set (e := t) in *; clearbody e; destruct e.

Ltac arith :=
  repeat match goal with c : cost |- _ => destruct c end;
  simpl in *; try easy; try (f_equal; lia); try lia.

Lemma plus_comm a b : plus a b = plus b a.
Proof. arith. Qed.
Lemma plus_assoc a b c : plus a (plus b c) = plus (plus a b) c.
Proof. arith. Qed.
Lemma plus_swap a b c : plus a (plus b c) = plus b (plus a c).
Proof. arith. Qed.
Lemma plus_0 a : plus (Fin 0) a = a.
Proof. arith. Qed.
Lemma plus_inf a : plus a Inf = Inf.
Proof. arith. Qed.
Lemma le_refl a : le a a.
Proof. arith. Qed.
Lemma le_trans a b c : le a b -> le b c -> le a c.
Proof. arith. Qed.
Lemma le_inf a : le a Inf.
Proof. arith. Qed.
Lemma plus_mono a b c d : le a b -> le c d -> le (plus a c) (plus b d).
Proof. arith. Qed.
Lemma plus_le a b c : le b c -> le (plus a b) (plus a c).
Proof. arith. Qed.
Lemma leb_le a b : leb a b = true <-> le a b.
Proof. arith. all: try apply Z.leb_le. Qed.
Lemma cmin_l a b : le (cmin a b) a.
Proof. arith. Qed.
Lemma cmin_r a b : le (cmin a b) b.
Proof. arith. Qed.
Lemma minus_plus c d : plus (Fin d) (minus c d) = c.
Proof. arith. Qed.
#[export] Hint Resolve le_refl le_inf cmin_l cmin_r : core.

Lemma sum_cons a l : sum (a :: l) = plus a (sum l).
Proof. reflexivity. Qed.

Lemma sum_app l k : sum (l ++ k) = plus (sum l) (sum k).
Proof.
  induction l as [|a l IH]; simpl; [symmetry; apply plus_0|].
  unfold sum in *. rewrite IH. apply plus_assoc.
Qed.

Lemma sum_mono {A} (f g : A -> cost) l :
  (forall a, In a l -> le (f a) (g a)) -> le (sum (map f l)) (sum (map g l)).
Proof.
  induction l as [|a l IH]; simpl; intros H; [lia|].
  apply plus_mono; [apply H; auto | apply IH; intros; apply H; auto].
Qed.

Lemma sum_nonneg {A} (f : A -> cost) l :
  (forall a, In a l -> le (Fin 0) (f a)) -> le (Fin 0) (sum (map f l)).
Proof.
  induction l as [|a l IH]; simpl; intros H; [lia|].
  assert (H1 := H a (or_introl eq_refl)).
  assert (H2 : le (Fin 0) (sum (map f l))) by (apply IH; intros; apply H; auto).
  change (fold_right plus (Fin 0) (map f l)) with (sum (map f l)).
  destruct (f a), (sum (map f l)); simpl in *; try easy; lia.
Qed.

Definition smallest (l : list cost) : cost := fold_right cmin Inf l.

Lemma smallest_in c l : In c l -> le (smallest l) c.
Proof.
  induction l as [|a l IH]; simpl; [easy|]. intros [->|H]; auto.
  eapply le_trans; [apply cmin_r | apply IH, H].
Qed.

Lemma smallest_glb b l : (forall c, In c l -> le b c) -> le b (smallest l).
Proof.
  induction l as [|a l IH]; simpl; intros H; [auto|].
  assert (H1 := H a (or_introl eq_refl)).
  assert (H2 : le b (smallest l)) by (apply IH; auto).
  change (fold_right cmin Inf l) with (smallest l).
  destruct a, (smallest l), b; simpl in *; try easy; lia.
Qed.

(** ** Labellings *)

Definition upd (x : labelling) (v : positive) (a : nat) : labelling :=
  fun u => if Pos.eqb u v then a else x u.

Lemma upd_same x v a : upd x v a v = a.
Proof. unfold upd. now rewrite Pos.eqb_refl. Qed.
Lemma upd_other x v a u : u <> v -> upd x v a u = x u.
Proof. unfold upd. intros H. destruct (Pos.eqb_spec u v); congruence. Qed.

Definition mem (v : positive) (l : list positive) : bool := existsb (Pos.eqb v) l.

Lemma mem_in v l : mem v l = true <-> In v l.
Proof.
  unfold mem. rewrite existsb_exists. split.
  - intros (u & H & E). apply Pos.eqb_eq in E. now subst.
  - intros H. exists v. split; auto. apply Pos.eqb_refl.
Qed.

Lemma mem_not v l : mem v l = false <-> ~ In v l.
Proof. rewrite <- mem_in. destruct (mem v l); split; congruence. Qed.

Lemma value_agree c x y : (forall v, In v (fst c) -> x v = y v) -> value c x = value c y.
Proof. intros H. unfold value. f_equal. apply map_ext_in, H. Qed.

Lemma value_upd c x v a : ~ In v (fst c) -> value c (upd x v a) = value c x.
Proof.
  intros H. apply value_agree. intros u Hu. apply upd_other. intros ->. auto.
Qed.

(** The labelling that gives the variables of a scope some labels, and 0 to all others. *)
Fixpoint env (scope : list positive) (labels : list nat) : labelling :=
  match scope, labels with
  | v :: scope', a :: labels' => upd (env scope' labels') v a
  | _, _ => fun _ => O
  end.

Lemma env_map scope x v : In v scope -> env scope (map x scope) v = x v.
Proof.
  induction scope as [|u scope IH]; simpl; [easy|]. intros H.
  destruct (Pos.eq_dec v u) as [->|N]; [apply upd_same|].
  rewrite upd_other by auto. apply IH. destruct H; congruence.
Qed.

(** ** Tables *)

Fixpoint mapt (f : cost -> cost) (t : table) : table :=
  match t with
  | Val c => Val (f c)
  | Row rows => Row (map (mapt f) rows)
  end.

Lemma entry_mapt f t idx : f Inf = Inf -> entry (mapt f t) idx = f (entry t idx).
Proof.
  intros H. revert t. induction idx as [|a idx IH]; intros [c|rows]; simpl; auto.
  rewrite nth_error_map. destruct (nth_error rows a); simpl; auto.
Qed.

Fixpoint plust (t u : table) {struct t} : table :=
  match t, u with
  | Val a, Val b => Val (plus a b)
  | Row l, Row k =>
      Row ((fix go l k := match l, k with
                          | a :: l', b :: k' => plust a b :: go l' k'
                          | _, _ => []
                          end) l k)
  | _, _ => Row []
  end.

Lemma entry_plust t u idx : entry (plust t u) idx = plus (entry t idx) (entry u idx).
Proof.
  revert t u. induction idx as [|a idx IH]; intros [c|l] [d|k]; simpl; auto.
  - destruct c; auto.
  - destruct a; auto.
  - destruct a; simpl; rewrite plus_comm; auto.
  - revert a k. induction l as [|b l IHl]; intros a k.
    + destruct a; simpl; auto.
    + destruct k as [|e k]; [destruct a; simpl; rewrite plus_comm; auto|].
      destruct a; simpl; auto.
Qed.

Fixpoint least (t : table) : cost :=
  match t with
  | Val c => c
  | Row rows => smallest (map least rows)
  end.

Lemma least_le t idx : le (least t) (entry t idx).
Proof.
  revert t. induction idx as [|a idx IH]; intros [c|rows]; simpl; auto.
  destruct (nth_error rows a) as [row|] eqn:E; auto.
  eapply le_trans; [|apply IH]. apply smallest_in, in_map. eapply nth_error_In, E.
Qed.

(** The largest finite entry, at least 0. *)
Fixpoint highest (t : table) : Z :=
  match t with
  | Val (Fin c) => Z.max 0 c
  | Val Inf => 0
  | Row rows => fold_right Z.max 0 (map highest rows)
  end.

Lemma highest_le t idx c : entry t idx = Fin c -> c <= highest t.
Proof.
  revert t. induction idx as [|a idx IH]; intros [d|rows]; simpl; try easy.
  - intros ->. lia.
  - destruct (nth_error rows a) as [row|] eqn:E; [|easy]. intros H. apply IH in H.
    apply nth_error_In in E. clear - E H. induction rows as [|b rows IHr]; simpl in *; [easy|].
    destruct E as [->|E]; [lia|]. specialize (IHr E). lia.
Qed.

(** The table of a function of the labels. *)
Fixpoint tabulate (shape : list nat) (f : list nat -> cost) : table :=
  match shape with
  | [] => Val (f [])
  | d :: shape' => Row (map (fun a => tabulate shape' (fun idx => f (a :: idx))) (seq 0 d))
  end.

Lemma nth_error_seq d a : (a < d)%nat -> nth_error (seq 0 d) a = Some a.
Proof.
  intros H. rewrite (nth_error_nth' _ O) by (rewrite seq_length; auto).
  now rewrite seq_nth.
Qed.

Lemma entry_tabulate shape f idx :
  Forall2 (fun a d => (a < d)%nat) idx shape -> entry (tabulate shape f) idx = f idx.
Proof.
  intros H. revert f. induction H as [|a d idx shape H _ IH]; intros f; simpl; auto.
  rewrite nth_error_map, nth_error_seq by auto. simpl. apply IH.
Qed.

(** The smallest value of a function over choices of labels. *)
Fixpoint minover (choices : list (list nat)) (f : list nat -> cost) : cost :=
  match choices with
  | [] => f []
  | c :: rest => smallest (map (fun a => minover rest (fun idx => f (a :: idx))) c)
  end.

Lemma minover_le choices f idx :
  Forall2 (fun a c => In a c) idx choices -> le (minover choices f) (f idx).
Proof.
  intros H. revert f. induction H as [|a c idx choices H _ IH]; intros f; simpl; auto.
  eapply le_trans; [|apply (IH (fun idx => f (a :: idx)))]. apply smallest_in.
  apply in_map_iff. eauto.
Qed.

Lemma minover_glb choices f b :
  (forall idx, Forall2 (fun a c => In a c) idx choices -> le b (f idx)) ->
  le b (minover choices f).
Proof.
  revert f. induction choices as [|c choices IH]; intros f H; simpl; [apply H; constructor|].
  apply smallest_glb. intros d Hd. apply in_map_iff in Hd. destruct Hd as (a & <- & Ha).
  apply IH. intros idx Hi. apply H. constructor; auto.
Qed.

(** Whether a test holds for all choices of labels. *)
Fixpoint allover (choices : list (list nat)) (f : list nat -> bool) : bool :=
  match choices with
  | [] => f []
  | c :: rest => forallb (fun a => allover rest (fun idx => f (a :: idx))) c
  end.

Lemma allover_all choices f idx :
  allover choices f = true -> Forall2 (fun a c => In a c) idx choices -> f idx = true.
Proof.
  intros A H. revert f A. induction H as [|a c idx choices H _ IH]; intros f; simpl; auto.
  intros A. rewrite forallb_forall in A. apply (IH (fun idx => f (a :: idx))), A, H.
Qed.

(** One amount for each label, subtracted along an axis; without an amount, the cost is +∞. *)
Fixpoint sub (axis : nat) (amounts : list Z) (t : table) : table :=
  match t with
  | Val _ => Row []
  | Row rows =>
      match axis with
      | O => Row (map (fun p => mapt (fun c => minus c (snd p)) (fst p)) (combine rows amounts))
      | S k => Row (map (sub k amounts) rows)
      end
  end.

Lemma nth_error_combine {A B} (l : list A) (k : list B) a :
  nth_error (combine l k) a =
  match nth_error l a, nth_error k a with Some b, Some c => Some (b, c) | _, _ => None end.
Proof.
  revert k a. induction l as [|b l IH]; intros [|c k] [|a]; simpl; auto.
  now destruct (nth_error l a).
Qed.

Lemma entry_sub axis amounts t idx a d :
  nth_error idx axis = Some a -> nth_error amounts a = Some d ->
  entry (sub axis amounts t) idx = minus (entry t idx) d.
Proof.
  revert t idx. induction axis as [|k IH]; intros [c|rows] [|b idx] Hi Ha; simpl in *;
    try easy; try (destruct b; easy).
  - injection Hi as ->. rewrite nth_error_map, nth_error_combine, Ha.
    destruct (nth_error rows a) as [row|]; simpl; auto.
    now rewrite entry_mapt.
  - rewrite nth_error_map. destruct (nth_error rows b) as [row|]; simpl; auto.
Qed.

(** The table without an axis, for one label of it. *)
Fixpoint slice (axis : nat) (a : nat) (t : table) : table :=
  match t with
  | Val _ => Row []
  | Row rows =>
      match axis with
      | O => nth a rows (Row [])
      | S k => Row (map (slice k a) rows)
      end
  end.

(** A list without the element at some position. *)
Fixpoint drop {A} (k : nat) (l : list A) : list A :=
  match k, l with
  | _, [] => []
  | O, _ :: l' => l'
  | S k', a :: l' => a :: drop k' l'
  end.

Lemma entry_void idx : entry (Row []) idx = Inf.
Proof. destruct idx as [|[|a] idx]; auto. Qed.

Lemma entry_slice axis a t idx :
  nth_error idx axis = Some a -> entry (slice axis a t) (drop axis idx) = entry t idx.
Proof.
  revert t idx. induction axis as [|k IH]; intros [c|rows] [|b idx] Hi; try easy.
  - simpl. apply entry_void.
  - simpl in *. injection Hi as ->. destruct (nth_error rows a) as [row|] eqn:E.
    + now rewrite (nth_error_nth _ _ _ E).
    + rewrite nth_overflow by now apply nth_error_None. apply entry_void.
  - simpl. destruct b; auto.
  - simpl in *. rewrite nth_error_map. destruct (nth_error rows b) as [row|]; simpl; auto.
Qed.

(** The table with only some labels along an axis, in this order. *)
Fixpoint take (axis : nat) (kept : list nat) (t : table) : table :=
  match t with
  | Val _ => Row []
  | Row rows =>
      match axis with
      | O => Row (map (fun a => nth a rows (Row [])) kept)
      | S k => Row (map (take k kept) rows)
      end
  end.

Lemma entry_take axis kept t idx old j a :
  nth_error idx axis = Some j -> nth_error kept j = Some a -> nth_error old axis = Some a ->
  drop axis idx = drop axis old -> entry (take axis kept t) idx = entry t old.
Proof.
  revert t idx old. induction axis as [|k IH]; intros [c|rows] [|b idx] [|e old] Hi Hk Ho Hd;
    simpl in *; try easy; try (destruct b; easy).
  - injection Hi as ->. injection Ho as ->. subst. rewrite nth_error_map, Hk. simpl.
    destruct (nth_error rows a) as [row|] eqn:E.
    + now rewrite (nth_error_nth _ _ _ E).
    + rewrite nth_overflow by now apply nth_error_None. apply entry_void.
  - injection Hd as -> Hd. rewrite nth_error_map. destruct (nth_error rows e); simpl; auto.
Qed.

(** ** Tries: maps from positive numbers *)

Inductive trie (A : Type) := Leaf | Node (l : trie A) (o : option A) (r : trie A).
Arguments Leaf {A}.
Arguments Node {A}.

Fixpoint get {A} (p : positive) (t : trie A) : option A :=
  match t with
  | Leaf => None
  | Node l o r => match p with xH => o | xO q => get q l | xI q => get q r end
  end.

Fixpoint set {A} (p : positive) (new : option A) (t : trie A) : trie A :=
  match p, t with
  | xH, Leaf => Node Leaf new Leaf
  | xO q, Leaf => Node (set q new Leaf) None Leaf
  | xI q, Leaf => Node Leaf None (set q new Leaf)
  | xH, Node l _ r => Node l new r
  | xO q, Node l o r => Node (set q new l) o r
  | xI q, Node l o r => Node l o (set q new r)
  end.

Lemma get_set_same {A} p (new : option A) t : get p (set p new t) = new.
Proof. revert t. induction p; intros [|l o r]; simpl; auto. Qed.

Lemma get_set_other {A} p q (new : option A) t : p <> q -> get p (set q new t) = get p t.
Proof.
  revert q t. induction p as [p IH|p IH|]; intros [q|q|] [|l o r] H; simpl; auto;
    try (rewrite IH by congruence); try congruence; try (destruct p; reflexivity); auto.
Qed.

Lemma set_comm {A} p q (a b : option A) : p <> q -> forall t, set p a (set q b t) = set q b (set p a t).
Proof.
  revert q. induction p as [p IH|p IH|]; intros [q|q|] N [|l o r]; simpl; auto; try congruence;
    rewrite IH; auto; congruence.
Qed.

Arguments get {A} p t : simpl nomatch.
Arguments set {A} p new t : simpl nomatch.

Fixpoint total {A} (f : A -> cost) (t : trie A) : cost :=
  match t with
  | Leaf => Fin 0
  | Node l o r => plus (total f l) (plus (match o with Some a => f a | None => Fin 0 end) (total f r))
  end.

Definition one {A} (f : A -> cost) (o : option A) : cost :=
  match o with Some a => f a | None => Fin 0 end.

Lemma total_set {A} (f : A -> cost) p new t :
  total f (set p new t) = plus (one f new) (total f (set p None t)).
Proof.
  revert t. induction p as [p IH|p IH|]; intros [|l o r]; simpl; try rewrite IH; unfold one;
    repeat match goal with |- context [total f ?t] => split_cost (total f t) end;
    destruct new as [a|]; try split_cost (f a); try destruct o as [b|]; try split_cost (f b);
    simpl; auto; f_equal; lia.
Qed.

Lemma total_void {A} (f : A -> cost) p : total f (set p None Leaf) = Fin 0.
Proof. induction p; simpl; try rewrite IHp; auto. Qed.

Lemma total_get {A} (f : A -> cost) p t :
  total f t = plus (one f (get p t)) (total f (set p None t)).
Proof.
  revert t. induction p as [p IH|p IH|]; intros [|l o r]; simpl; auto.
  - rewrite total_void. auto.
  - rewrite (IH r) at 1. unfold one. destruct (get p r) as [a|]; destruct o as [b|];
      repeat match goal with |- context [total f ?t] => split_cost (total f t) end;
      try split_cost (f a); try split_cost (f b); simpl; auto; f_equal; lia.
  - rewrite total_void. auto.
  - rewrite (IH l) at 1. unfold one. destruct (get p l) as [a|]; destruct o as [b|];
      repeat match goal with |- context [total f ?t] => split_cost (total f t) end;
      try split_cost (f a); try split_cost (f b); simpl; auto; f_equal; lia.
  - unfold one. destruct o as [b|];
      repeat match goal with |- context [total f ?t] => split_cost (total f t) end;
      try split_cost (f b); simpl; auto; f_equal; lia.
Qed.

Lemma total_at {A} (f : A -> cost) p a t :
  get p t = Some a -> total f t = plus (f a) (total f (set p None t)).
Proof. intros H. rewrite (total_get f p t), H. auto. Qed.

Lemma total_mono {A} (f g : A -> cost) t :
  (forall p a, get p t = Some a -> le (f a) (g a)) -> le (total f t) (total g t).
Proof.
  induction t as [|l IHl o r IHr]; simpl; intros H; [lia|].
  apply plus_mono; [apply IHl; intros p a E; apply (H (xO p) a E)|].
  apply plus_mono; [|apply IHr; intros p a E; apply (H (xI p) a E)].
  destruct o as [a|]; [apply (H xH a eq_refl)|apply le_refl].
Qed.

Lemma total_nonneg {A} (f : A -> cost) t :
  (forall p a, get p t = Some a -> le (Fin 0) (f a)) -> le (Fin 0) (total f t).
Proof.
  intros H. assert (Z : total (fun _ : A => Fin 0) t = Fin 0).
  { clear H. induction t as [|l IHl o r IHr]; simpl; auto. rewrite IHl, IHr. now destruct o. }
  rewrite <- Z. apply total_mono. intros p a E. eapply H, E.
Qed.

Lemma set_none_get {A} p q (t : trie A) a : get p (set q None t) = Some a -> get p t = Some a.
Proof.
  destruct (Pos.eq_dec p q) as [->|N]; [rewrite get_set_same; easy|].
  now rewrite get_set_other.
Qed.

(** Subsets of a trie. *)
Fixpoint filter_trie {A} (keep : A -> bool) (t : trie A) : trie A :=
  match t with
  | Leaf => Leaf
  | Node l o r =>
      Node (filter_trie keep l)
        (match o with Some a => if keep a then o else None | None => None end)
        (filter_trie keep r)
  end.

Lemma total_filter {A} (f : A -> cost) keep t :
  (forall p a, get p t = Some a -> le (Fin 0) (f a)) -> le (total f (filter_trie keep t)) (total f t).
Proof.
  induction t as [|l IHl o r IHr]; simpl; intros H; [lia|].
  apply plus_mono; [apply IHl; intros p a E; apply (H (xO p) a E)|].
  apply plus_mono; [|apply IHr; intros p a E; apply (H (xI p) a E)].
  destruct o as [a|]; [|apply le_refl].
  destruct (keep a); [apply le_refl|apply (H xH a eq_refl)].
Qed.

(** The last element of a trie's keys is not needed; the bind of options is. *)
Notation "'do' p <- a ; b" := (match a with Some p => b | None => None end)
  (at level 200, p pattern, right associativity).
Notation "'ensure' a ; b" := (if a then b else None) (at level 200, right associativity).
