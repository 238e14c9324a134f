(** What is proved about the checker of proof files: definitions and statements, no proofs.

    Coq in four lines. [Inductive] lists all forms that a value can have; [Definition] and [Fixpoint]
    define functions; [match] distinguishes the forms. [Z] are the integers, [positive] the integers
    from 1, [nat] those from 0, [Prop] the statements. [list A] are finite lists: [nil], or [a :: l].
    The theorem that [check] of Check.v is [sound] is the last one of Check.v. *)

Require Import ZArith List.
Import ListNotations.
Local Open Scope Z_scope.

(** ** Costs: integers and +∞ *)

Inductive cost := Fin (c : Z) | Inf.

Definition plus (a b : cost) : cost :=
  match a, b with
  | Fin x, Fin y => Fin (x + y)
  | _, _ => Inf
  end.

Definition le (a b : cost) : Prop :=
  match a, b with
  | _, Inf => True
  | Fin x, Fin y => x <= y
  | Inf, Fin _ => False
  end.

Definition sum (costs : list cost) : cost := fold_right plus (Fin 0) costs.

(** ** Models *)

(** A cost table is one cost, or one table for each label of its first variable. *)
Inductive table := Val (c : cost) | Row (rows : list table).

(** The entry of a table at some labels. Labels count from 0; without an entry, the cost is +∞. *)
Fixpoint entry (t : table) (labels : list nat) : cost :=
  match labels, t with
  | [], Val c => c
  | a :: rest, Row rows =>
      match nth_error rows a with Some row => entry row rest | None => Inf end
  | _, _ => Inf
  end.

(** A labelling gives every variable a label. Variables are numbered 1, 2, 3, ... *)
Definition labelling := positive -> nat.

(** A factor has a scope, which lists its variables, and a table; so have the costs of one variable. *)
Definition factor := (list positive * table)%type.
Definition value (f : factor) (x : labelling) : cost := entry (snd f) (map x (fst f)).

(** [unary] has the costs of each variable's labels: variable 1 first, then 2, and so on. The length
    of its list is the number of a variable's labels; any other label costs +∞. *)
Record model := { unary : list (list cost); factors : list factor; constant : Z }.

Definition own (v : positive) (costs : list cost) : factor := ([v], Row (map Val costs)).

Fixpoint owns (v : positive) (lists : list (list cost)) : list factor :=
  match lists with
  | [] => []
  | costs :: rest => own v costs :: owns (Pos.succ v) rest
  end.

Definition blocks (m : model) : list factor := owns 1 (unary m) ++ factors m.

Definition energy (m : model) (x : labelling) : cost :=
  plus (Fin (constant m)) (sum (map (fun f => value f x) (blocks m))).

(** ** Logs: the records of docs/proofs.md, with their arrays of integers *)

Notation ints := (list Z).

Inductive record :=
| LOAD (numbers : ints)
| REMOVE (variable labels : ints)
| PERSISTENT (labels amounts : ints)
| SPLIT (which : ints)
| SUBSTITUTE (which image : ints)
| ELIMINATE (which : ints)
| SHIFT (places amounts : ints)
| COMPONENT (variables factors : ints)
| END
| CUT (which : ints)
| DIVE (which : ints)
| BRANCH (decision : ints)
| CLOSE | LEAVE
| STEP (words amounts variables falls reasons : ints)
| COMBINE (which members scope : ints)
| DUAL (sizes members bits : ints)
| PIECE (nodes edges bits : ints)
| LABELS (labels : ints)
| CONCLUDE (what numbers : ints) | HARD.

(** A log is about costs in multiples of 2^[exponent]; the solver multiplied them by 2^[shift]. For
    each edge of the relaxation, [edges] has the variables of a table and, if it leads to a smaller
    table, the variables of that. Whatever these numbers are, what [check] says is true. *)
Record log := { exponent : Z; shift : Z; edges : list (ints * option ints); records : list record }.

(** ** Statements *)

(** [Rejected] says nothing. [Between]: no labelling costs less than b, and x costs c. *)
Inductive verdict :=
| Rejected | Bound (b : Z)
| Between (b c : Z) (x : labelling)
| Optimal (b : Z) (x : labelling)
| Infeasible.

Definition lower_bound (m : model) (b : Z) : Prop := forall x, le (Fin b) (energy m x).

Definition holds (m : model) (v : verdict) : Prop :=
  match v with
  | Rejected => True
  | Bound b => lower_bound m b
  | Between b c x => energy m x = Fin c /\ lower_bound m b
  | Optimal b x => energy m x = Fin b /\ lower_bound m b
  | Infeasible => forall x, energy m x = Inf
  end.

(** The checker computes bounds from a model [low], in which products of a weight and a table entry
    are rounded down. Whatever [low] and the log, what it says is true of the model. *)
Definition sound (check : model -> model -> log -> verdict) : Prop :=
  forall low m l, holds m (check low m l).
