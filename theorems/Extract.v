(** What the two theorems rest on, and the checker as an OCaml program. *)

Require Import Statement Rounding Check.
Require Extraction.
Require ExtrOcamlBasic.

Print Assumptions check_sound.
Print Assumptions rounded_down.

Extraction Language OCaml.
Extraction "checker.ml" check initial next_state finish.
