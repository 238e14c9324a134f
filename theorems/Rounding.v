(** Doubles are dyadic rationals m * 2^e. Costs in units are rounded down, exactly. *)

Require Import ZArith QArith Qpower List Lia Bool.
Require Import Statement Costs.
Import ListNotations.
Local Open Scope Z_scope.

(** The double with these 64 bits, as mantissa and exponent; [None] for infinities and NaN. *)
Definition double (bits : Z) : option (Z * Z) :=
  let u := bits mod 2 ^ 64 in
  let e := (u / 2 ^ 52) mod 2 ^ 11 in
  let f := u mod 2 ^ 52 in
  let s := if u <? 2 ^ 63 then 1 else -1 in
  if e =? 2047 then None
  else if e =? 0 then Some (s * f, -1074)
  else Some (s * (f + 2 ^ 52), e - 1075).

(** Comparison and sum of dyadic numbers. *)
Definition dle (a b : Z * Z) : bool :=
  let e := Z.min (snd a) (snd b) in
  fst a * 2 ^ (snd a - e) <=? fst b * 2 ^ (snd b - e).
Definition dplus (a b : Z * Z) : Z * Z :=
  let e := Z.min (snd a) (snd b) in
  (fst a * 2 ^ (snd a - e) + fst b * 2 ^ (snd b - e), e).

(** Costs are multiples of 2^e; a unit is g * 2^u. The cost c is c * num / den units. *)
Definition scale_num (e u : Z) : Z := 2 ^ Z.max 0 (e - u).
Definition scale_den (e g u : Z) : Z := g * 2 ^ Z.max 0 (u - e).
Definition units_of (num den : Z) (c : Z) : Z := c * num / den.

Lemma scale_num_pos e u : 0 < scale_num e u.
Proof. apply Z.pow_pos_nonneg; lia. Qed.
Lemma scale_den_pos e g u : 1 <= g -> 0 < scale_den e g u.
Proof. intros H. apply Z.mul_pos_pos; [lia|]. apply Z.pow_pos_nonneg; lia. Qed.

Lemma units_below num den c : 0 < den -> units_of num den c * den <= c * num.
Proof. intros H. unfold units_of. rewrite Z.mul_comm. now apply Z.mul_div_le. Qed.

(** The same number of units by shifts: divisions of long numbers take longer. *)
Definition units_fast (e g u : Z) (c : Z) : Z :=
  let s := Z.shiftl c (e - u) in if g =? 1 then s else s / g.

Lemma units_fast_of e g u c : 1 <= g -> units_fast e g u c = units_of (scale_num e u) (scale_den e g u) c.
Proof.
  intros G. assert (F : units_fast e g u c = Z.shiftl c (e - u) / g).
  { unfold units_fast. destruct (Z.eqb_spec g 1) as [->|]; [now rewrite Z.div_1_r|auto]. }
  rewrite F. unfold units_of, scale_num, scale_den. destruct (Z.le_gt_cases u e) as [L|L].
  - replace (Z.max 0 (e - u)) with (e - u) by lia. replace (Z.max 0 (u - e)) with 0 by lia.
    rewrite Z.shiftl_mul_pow2 by lia. now rewrite Z.pow_0_r, Z.mul_1_r.
  - replace (Z.max 0 (e - u)) with 0 by lia. replace (Z.max 0 (u - e)) with (u - e) by lia.
    replace (e - u) with (- (u - e)) by lia. rewrite Z.shiftl_opp_r, Z.shiftr_div_pow2 by lia.
    rewrite Z.pow_0_r, Z.mul_1_r, (Z.mul_comm g). apply Z.div_div; [|lia].
    assert (0 < 2 ^ (u - e)) by (apply Z.pow_pos_nonneg; lia). lia.
Qed.

(** Whether no entry is rounded. *)
Fixpoint exact_table (e g u : Z) (t : table) : bool :=
  match t with
  | Val (Fin c) =>
      let s := Z.shiftl c (e - u) in
      (Z.shiftl s (u - e) =? c) && (if g =? 1 then true else s mod g =? 0)
  | Val Inf => true
  | Row rows => forallb (exact_table e g u) rows
  end.

(** The number of a double: m * 2^e, as a rational. *)
Definition rational (m e : Z) : Q := (inject_Z m * Qpower 2 e)%Q.

Lemma power_split a b : 0 <= b -> (Qpower 2 (a + b) == Qpower 2 a * inject_Z (2 ^ b))%Q.
Proof.
  intros B. rewrite Qpower_plus by discriminate. apply Qmult_comp; [reflexivity|].
  rewrite Zpower_Qpower by auto. reflexivity.
Qed.

(** Each number of units, times the unit g * 2^u, is at most the given number m * 2^e. *)
Theorem rounded_down m e g u : 1 <= g ->
  (rational (units_of (scale_num e u) (scale_den e g u) m * g) u <= rational m e)%Q.
Proof.
  intros G. unfold rational.
  assert (P : forall a, (0 < Qpower 2 a)%Q) by (intros; apply Qpower_0_lt; reflexivity).
  assert (H := units_below (scale_num e u) (scale_den e g u) m (scale_den_pos e g u G)).
  set (k := units_of (scale_num e u) (scale_den e g u) m) in *. clearbody k.
  unfold scale_num, scale_den in H. destruct (Z.le_gt_cases u e) as [L|L].
  - replace (Z.max 0 (e - u)) with (e - u) in H by lia.
    replace (Z.max 0 (u - e)) with 0 in H by lia. rewrite Z.pow_0_r, Z.mul_1_r in H.
    replace e with (u + (e - u)) by lia. rewrite power_split by lia.
    rewrite (Qmult_comm (Qpower 2 u) (inject_Z _)), Qmult_assoc, <- inject_Z_mult.
    apply Qmult_le_compat_r; [|apply Qlt_le_weak, P]. rewrite <- Zle_Qle. lia.
  - replace (Z.max 0 (e - u)) with 0 in H by lia.
    replace (Z.max 0 (u - e)) with (u - e) in H by lia. rewrite Z.pow_0_r, Z.mul_1_r in H.
    replace u with (e + (u - e)) at 1 by lia. rewrite power_split by lia.
    rewrite (Qmult_comm (Qpower 2 e) (inject_Z _)), Qmult_assoc, <- inject_Z_mult.
    apply Qmult_le_compat_r; [|apply Qlt_le_weak, P]. rewrite <- Zle_Qle. lia.
Qed.

