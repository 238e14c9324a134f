(* theorems/check MODEL.json LOG: reads the two files, calls the extracted checker, prints the verdict.
   A mistake in the reader of the log can only reject a proof: the theorem holds for every log. *)

module C = Checker

exception Bad of string
let fail message = raise (Bad message)

(* --- numbers ---------------------------------------------------------------------------------- *)

let rec positive n =
  if n = 1 then C.XH else if n land 1 = 0 then C.XO (positive (n lsr 1)) else C.XI (positive (n lsr 1))

let integer n = if n = 0 then C.Z0 else if n > 0 then C.Zpos (positive n) else C.Zneg (positive (-n))

(* a signed integer of 64 bits, which may not fit an int *)
let integer64 n =
  let small = Int64.to_int n in
  if Int64.equal (Int64.of_int small) n && small <> min_int then integer small
  else
    let digit k = Int64.to_int (Int64.logand (Int64.shift_right_logical n k) 1L) in
    let rec build k acc =
      if k > 63 then acc
      else
        let weight = C.Z.pow (integer 2) (integer k) in
        let term = if digit k = 0 then C.Z0 else if k = 63 then C.Z.opp weight else weight in
        build (k + 1) (C.Z.add acc term)
    in
    build 0 C.Z0

(* decimal digits to limbs of 30 bits, the lowest first, and to an integer *)
let decimal text =
  let negative = text <> "" && text.[0] = '-' in
  let first = if negative then 1 else 0 in
  let n = String.length text in
  if n = first then fail "an empty number";
  String.iteri (fun k c -> if k >= first && (c < '0' || c > '9') then fail ("not an integer: " ^ text)) text;
  let rec scaled by plus limbs = match limbs with
    | [] -> if plus = 0 then [] else [plus land 0x3FFFFFFF] @ scaled by (plus lsr 30) []
    | d :: rest -> let v = d * by + plus in (v land 0x3FFFFFFF) :: scaled by (v lsr 30) rest in
  let rec go at limbs =
    if at >= n then limbs
    else
      let size = min 9 (n - at) in
      let part = ref 0 and by = ref 1 in
      for k = at to at + size - 1 do
        part := 10 * !part + Char.code text.[k] - 48; by := 10 * !by done;
      go (at + size) (scaled !by !part limbs) in
  let rec whole limbs = match limbs with (* None is 0 *)
    | [] -> None
    | d :: rest ->
        (match whole rest with
         | None -> if d = 0 then None else Some (positive d)
         | Some high ->
             let rec low k = if k = 30 then high
               else if d land (1 lsl k) = 0 then C.XO (low (k + 1)) else C.XI (low (k + 1)) in
             Some (low 0)) in
  if n - first <= 18 then
    integer (let v = ref 0 in String.iteri (fun k c -> if k >= first then v := 10 * !v + Char.code c - 48) text;
             if negative then - !v else !v)
  else match whole (go first []) with
    | None -> C.Z0
    | Some p -> if negative then C.Zneg p else C.Zpos p

(* decimal digits, from the bits of a positive number *)
let show z =
  let rec bits p = match p with C.XH -> [1] | C.XO q -> 0 :: bits q | C.XI q -> 1 :: bits q in
  let base = 1_000_000_000 in
  let rec double carry ds = match ds with
    | [] -> if carry = 0 then [] else [carry]
    | d :: rest -> let v = 2 * d + carry in (v mod base) :: double (v / base) rest in
  let digits p = List.fold_left (fun ds bit -> double bit ds) [] (List.rev (bits p)) in
  let text p = match List.rev (digits p) with
    | [] -> "0"
    | d :: rest -> String.concat "" (string_of_int d :: List.map (Printf.sprintf "%09d") rest) in
  match z with C.Z0 -> "0" | C.Zpos p -> text p | C.Zneg p -> "-" ^ text p

(* --- JSON --------------------------------------------------------------------------------------- *)

type json = Null | Bool of bool | Number of string | Text of string | List of json list
          | Object of (string * json) list

let parse text =
  let n = String.length text and at = ref 0 in
  let peek () = if !at < n then text.[!at] else fail "the JSON text ends early" in
  let rec space () =
    if !at < n && (match text.[!at] with ' ' | '\n' | '\t' | '\r' -> true | _ -> false)
    then (incr at; space ()) in
  let expect c = space (); if peek () <> c then fail (Printf.sprintf "expected %c at %d" c !at); incr at in
  let word w value =
    let k = String.length w in
    if !at + k <= n && String.sub text !at k = w then (at := !at + k; value) else fail "not JSON" in
  let string () =
    expect '"';
    let out = Buffer.create 16 in
    let rec go () = match peek () with
      | '"' -> incr at
      | '\\' -> Buffer.add_char out '\\'; incr at; Buffer.add_char out (peek ()); incr at; go ()
      | c -> Buffer.add_char out c; incr at; go () in
    go (); Buffer.contents out in
  let rec value () =
    space ();
    match peek () with
    | '{' ->
        incr at; space ();
        if peek () = '}' then (incr at; Object []) else
        let rec go acc =
          space ();
          let key = string () in
          expect ':';
          let one = value () in
          space ();
          if peek () = ',' then (incr at; go ((key, one) :: acc))
          else (expect '}'; Object (List.rev ((key, one) :: acc))) in
        go []
    | '[' ->
        incr at; space ();
        if peek () = ']' then (incr at; List []) else
        let rec go acc =
          let one = value () in
          space ();
          if peek () = ',' then (incr at; go (one :: acc))
          else (expect ']'; List (List.rev (one :: acc))) in
        go []
    | '"' -> Text (string ())
    | 'n' -> word "null" Null
    | 't' -> word "true" (Bool true)
    | 'f' -> word "false" (Bool false)
    | _ ->
        let first = !at in
        while !at < n && (match text.[!at] with '0'..'9' | '-' | '+' | '.' | 'e' | 'E' -> true | _ -> false)
        do incr at done;
        if !at = first then fail "not JSON";
        Number (String.sub text first (!at - first))
  in
  let found = value () in
  space ();
  if !at <> n then fail "text after the JSON value";
  found

let field name json = match json with
  | Object fields ->
      (match List.filter (fun (key, _) -> key = name) fields with
       | [(_, value)] -> value
       | _ -> fail ("expected one field " ^ name))
  | _ -> fail "expected an object"
let field_or name other json = try field name json with Bad _ -> other
let list json = match json with List l -> l | _ -> fail "expected a list"
let number json = match json with Number s -> decimal s | _ -> fail "expected an integer"
let small json = match json with Number s -> (try int_of_string s with _ -> fail s) | _ -> fail "expected an integer"

(* --- the model ---------------------------------------------------------------------------------- *)

let cost json = match json with Null -> C.Inf | other -> C.Fin (number other)

let table sizes costs =
  let rest = ref costs in
  let rec build sizes = match sizes with
    | [] -> (match !rest with c :: more -> rest := more; C.Val c | [] -> fail "a table has too few costs")
    | d :: inner ->
        let rec rows k = if k = 0 then [] else let row = build inner in row :: rows (k - 1) in
        C.Row (rows d) in
  let found = build sizes in
  if !rest <> [] then fail "a table has too many costs";
  found

(* The model that bounds are computed from, and that of energies: a factor whose costs are products
   has two lists of costs, rounded down and rounded to nearest. *)
let models json =
  if field "format" json <> Text "softmap integer model" then fail "not an integer model of softmap";
  if field "version" json <> Number "2" then fail "another version of the integer model";
  let unary = List.map (fun row -> List.map cost (list row)) (list (field "unary" json)) in
  let sizes = Array.of_list (List.map List.length unary) in
  let factor which one =
    let scope = List.map small (list (field "scope" one)) in
    let size v = if v < 0 || v >= Array.length sizes then fail "no such variable" else sizes.(v) in
    let costs = List.map cost (list (field_or which (field "costs" one) one)) in
    (List.map (fun v -> positive (v + 1)) scope, table (List.map size scope) costs) in
  let model which = { C.unary; factors = List.map (factor which) (list (field "factors" json));
    constant = number (field "constant" json) } in
  model "costs", model "energies"

(* --- edges of the relaxation -------------------------------------------------------------------- *)

(* An edge has the variables of a table and, if it leads to a smaller table, the variables of that.
   docs/proofs.md gives their order. The theorem holds for any edges: a mistake can only reject. *)

let int_of z =
  let rec go p = match p with C.XH -> 1 | C.XO q -> 2 * go q | C.XI q -> 2 * go q + 1 in
  match z with C.Z0 -> 0 | C.Zpos p -> go p | C.Zneg p -> - (go p)

let plain_edges scopes json =
  let scope factor =
    let k = small factor in
    if k < 0 || k >= Array.length scopes then fail "no such factor" else scopes.(k) in
  let edge json = match json with
    | List [factor; Null] -> (scope factor, None)
    | List [factor; axis] -> let s = scope factor in (s, Some [List.nth s (small axis)])
    | _ -> fail "an edge is a factor and an axis" in
  List.map edge (list (field "edges" json))

let rec pairs_of scope = match scope with
  | [] -> []
  | v :: rest -> List.map (fun u -> if u < v then (u, v) else (v, u)) rest @ pairs_of rest

(* edges from regions of one size: to the pair regions, by positions, then to variables in none *)
let couplings is_pair members alike =
  let n = match alike with [] -> 0 | s :: _ -> Array.length s in
  let out = ref [] and covered = Hashtbl.create 64 in
  for a = 0 to n - 2 do
    for b = a + 1 to n - 1 do
      List.iteri (fun k s ->
        let i, j = min s.(a) s.(b), max s.(a) s.(b) in
        if is_pair (i, j) then begin
          Hashtbl.replace covered (k, a) (); Hashtbl.replace covered (k, b) ();
          out := (Array.to_list s, Some [i; j]) :: !out
        end) alike
    done
  done;
  if members then
    List.iteri (fun k s ->
      Array.iteri (fun a v ->
        if not (Hashtbl.mem covered (k, a)) then out := (Array.to_list s, Some [v]) :: !out) s) alike;
  List.rev !out

let rec split sizes members = match sizes with
  | [] -> if members = [] then [] else fail "clusters have other sizes than members"
  | n :: rest ->
      let rec take n l = if n = 0 then [], l else match l with
        | [] -> fail "clusters have other sizes than members"
        | v :: l -> let a, b = take (n - 1) l in v :: a, b in
      if n < 3 then fail "a cluster has three or more different variables";
      let one, others = take n members in one :: split rest others

let tightened labels scopes plain sizes members held =
  let once l = let seen = Hashtbl.create 64 in
    List.filter (fun s -> if Hashtbl.mem seen s then false else (Hashtbl.replace seen s (); true)) l in
  let clusters = once (List.map (List.sort_uniq compare) (split sizes members)) in
  List.iter2 (fun s n -> if List.length s < n then fail "a cluster names a variable twice")
    (List.map (List.sort_uniq compare) (split sizes members)) sizes;
  List.iter (List.iter (fun v -> if v < 0 || v >= Array.length labels then fail "no such variable")) clusters;
  let states s = List.fold_left (fun n v -> min max_int (n * labels.(v))) 1 s in
  if List.fold_left (fun n s -> n + states s) 0 clusters > held then fail "λ is too short for these clusters";
  let larger = List.filter (fun s -> List.length s > 2) (Array.to_list scopes) in
  let wanted = Hashtbl.create 64 and count = Hashtbl.create 64 in
  List.iter (fun (s, sub) -> match s, sub with
    | [i; j], None -> Hashtbl.replace wanted (min i j, max i j) () | _ -> ()) plain;
  List.iter (fun s -> List.iter (fun p -> Hashtbl.replace wanted p ()) (pairs_of s)) larger;
  List.iter (fun s -> List.iter (fun p ->
    if Hashtbl.mem count p then Hashtbl.replace wanted p () else Hashtbl.replace count p ()) (pairs_of s)) clusters;
  let pairs = List.sort compare (Hashtbl.fold (fun p () l -> if Hashtbl.mem wanted p then p :: l else l) count []) in
  let place = Hashtbl.create 64 in
  List.iter (fun p -> Hashtbl.replace place p ()) pairs;
  let is_pair = Hashtbl.mem place in
  let kept = List.filter (fun (s, sub) -> match s, sub with
    | [i; j], None -> not (is_pair (min i j, max i j)) | _ -> true) plain in
  let of_pair (i, j) = [([i; j], Some [i]); ([i; j], Some [j])] in
  let group members all =
    let arities = List.sort_uniq compare (List.map List.length all) in
    List.concat_map (fun n ->
      couplings is_pair members (List.map Array.of_list (List.filter (fun s -> List.length s = n) all))) arities in
  kept @ List.concat_map of_pair pairs @ group false larger @ group true clusters

(* --- labels of chain variables ------------------------------------------------------------------- *)

(* Each has the one label that the factors allow which lead to it from variables with labels. *)
let completed m found =
  let n = List.length m.C.unary and given = List.length found in
  if given >= n then found else begin
    let leading = Array.make n [] in
    let index p = int_of (C.Zpos p) - 1 in
    List.iter (fun (scope, table) ->
      let s = List.map index scope in
      let last = List.fold_left max 0 s in
      if last >= given && last < n then leading.(last) <- (s, table) :: leading.(last)) m.C.factors;
    let labels = Array.make n 0 in
    List.iteri (fun k z -> labels.(k) <- int_of z) found;
    let finite c = match c with C.Fin _ -> true | C.Inf -> false in
    let rec entry t s = match t, s with
      | C.Val c, [] -> finite c
      | C.Row rows, v :: rest -> (match List.nth_opt rows labels.(v) with Some t -> entry t rest | None -> false)
      | _ -> false in
    for v = given to n - 1 do
      let costs = Array.of_list (List.nth m.C.unary v) in
      let rec try_ a = if a < Array.length costs then begin
        labels.(v) <- a;
        if not (finite costs.(a) && List.for_all (fun (s, t) -> entry t s) leading.(v)) then try_ (a + 1) end in
      try_ 0
    done;
    List.map integer (Array.to_list labels)
  end

(* --- the log ------------------------------------------------------------------------------------ *)

let names = [| "LOAD"; "REMOVE"; "PERSISTENT"; "SPLIT"; "SUBSTITUTE"; "ELIMINATE"; "SHIFT"; "COMPONENT";
  "END"; "CUT"; "DIVE"; "BRANCH"; "CLOSE"; "LEAVE"; "STEP"; "COMBINE"; "DUAL"; "PIECE"; "LABELS";
  "CONCLUDE"; "HARD" |]
let arrays = [| 1; 2; 2; 1; 2; 1; 2; 2; 0; 1; 1; 1; 0; 0; 5; 3; 3; 3; 1; 2; 0 |]
let uncovered =
  [ (22, "SPINS"); (23, "ASSIGNMENT"); (24, "BOOLEANS"); (25, "COSTS"); (26, "GIVEN");
    (27, "LEARNED"); (28, "CORE"); (29, "GROUP"); (30, "EXCEPT"); (31, "PART"); (32, "RANKS");
    (33, "SQUARES") ]

let record kind found = match kind, found with
  | 1, [a] -> C.LOAD a | 2, [a; b] -> C.REMOVE (a, b) | 3, [a; b] -> C.PERSISTENT (a, b)
  | 4, [a] -> C.SPLIT a | 5, [a; b] -> C.SUBSTITUTE (a, b) | 6, [a] -> C.ELIMINATE a
  | 7, [a; b] -> C.SHIFT (a, b) | 8, [a; b] -> C.COMPONENT (a, b) | 9, [] -> C.END
  | 10, [a] -> C.CUT a | 11, [a] -> C.DIVE a | 12, [a] -> C.BRANCH a | 13, [] -> C.CLOSE
  | 14, [] -> C.LEAVE | 15, [a; b; c; d; e] -> C.STEP (a, b, c, d, e)
  | 16, [a; b; c] -> C.COMBINE (a, b, c) | 17, [a; b; c] -> C.DUAL (a, b, c)
  | 18, [a; b; c] -> C.PIECE (a, b, c) | 19, [a] -> C.LABELS a | 20, [a; b] -> C.CONCLUDE (a, b)
  | 21, [] -> C.HARD
  | _ -> fail "no such record"

let records text first =
  let n = String.length text and at = ref first in
  let need k = if k < 0 || !at + k > n then fail "the log ends within a record" in
  let array () =
    need 1;
    let head = Char.code text.[!at] in
    incr at;
    let width = 1 lsl (head land 3) and count = head lsr 2 in
    let count = if count < 63 then count else begin
      need 8;
      let c = Int64.to_int (String.get_int64_le text !at) in
      at := !at + 8; c end in
    if count < 0 || count > n then fail "an array is longer than the log";
    need (count * width);
    let one k =
      let place = !at + k * width in
      match width with
      | 1 -> integer (String.get_int8 text place)
      | 2 -> integer (String.get_int16_le text place)
      | 4 -> integer (Int32.to_int (String.get_int32_le text place))
      | _ -> integer64 (String.get_int64_le text place) in
    let rec build k acc = if k < 0 then acc else build (k - 1) (one k :: acc) in
    let found = build (count - 1) [] in
    at := !at + count * width;
    found in
  let rec go acc =
    if !at >= n then List.rev acc
    else begin
      let kind = Char.code text.[!at] in
      incr at;
      Option.iter (fun name -> fail (Printf.sprintf
        "a record, %s: this rule is not covered by the proved checker" name)) (List.assoc_opt kind uncovered);
      if kind < 1 || kind > Array.length arrays then fail (Printf.sprintf "no record of kind %d" kind);
      let rec some k = if k = 0 then [] else let a = array () in a :: some (k - 1) in
      go ((kind, record kind (some arrays.(kind - 1))) :: acc)
    end in
  go []

let crc32 text first =
  let table = Array.init 256 (fun n ->
    let c = ref n in
    for _ = 0 to 7 do c := if !c land 1 = 1 then 0xEDB88320 lxor (!c lsr 1) else !c lsr 1 done; !c) in
  let c = ref 0xFFFFFFFF in
  for k = first to String.length text - 1 do
    c := table.((!c lxor Char.code text.[k]) land 0xFF) lxor (!c lsr 8) done;
  !c lxor 0xFFFFFFFF

let read path =
  let channel = open_in_bin path in
  let text = really_input_string channel (in_channel_length channel) in
  close_in channel; text

(* --- verdicts ----------------------------------------------------------------------------------- *)

let say fields =
  print_string ("{" ^ String.concat ", " (List.map (fun (k, v) -> Printf.sprintf "%S: %s" k v) fields) ^ "}\n")

(* the first record that is not accepted; for the message only *)
let culprit m log kinds =
  let rec go k state kinds rest = match kinds, rest with
    | kind :: kinds, r :: rest ->
        (match C.next_state m log r state with
         | Some next -> go (k + 1) next kinds rest
         | None ->
             let covered = match r with
               | C.PIECE _ -> false | _ -> true in
             Printf.sprintf "record %d, %s%s" k names.(kind - 1)
               (if covered then ", is not accepted"
                else ": this rule is not covered by the proved checker"))
    | _, _ -> "the end of the log or its conclusion is not accepted" in
  go 1 C.initial kinds log.C.records

let main () =
  if Array.length Sys.argv <> 3 then (prerr_endline "usage: check MODEL.json LOG"; exit 2);
  let json = parse (read Sys.argv.(1)) in
  let low, m = models json in
  let text = read Sys.argv.(2) in
  let first = try String.index text '\n' + 1 with Not_found -> fail "the log has no header" in
  let header = parse (String.sub text 0 (first - 1)) in
  if field "format" header <> Text "softmap proof" then fail "not a proof written by softmap";
  if field "model" header <> field "model" json then fail "this proof is about another model";
  let text, first = match field_or "packed" Null header with
    | Null | Bool false -> text, first
    | Bool true -> Inflate.zlib text first, 0
    | _ -> fail "the records are packed in an unknown way" in
  if small (field "bytes" header) <> String.length text - first then fail "the log was cut";
  if small (field "crc32" header) <> crc32 text first then fail "the log was damaged or altered";
  let kinds = records text first in
  if field "version" header <> Number "3" then fail "another version of the log";
  let scopes = Array.of_list (List.map (fun one -> List.map small (list (field "scope" one)))
    (list (field "factors" json))) in
  let plain = plain_edges scopes json in
  let labels = Array.of_list (List.map List.length m.C.unary) in
  let edges = List.fold_left (fun edges (_, r) -> match r with
    | C.DUAL (_ :: _ as sizes, members, bits) ->
        tightened labels scopes plain (List.map int_of sizes) (List.map int_of members) (List.length bits)
    | _ -> edges) plain kinds in
  let edges = List.map (fun (s, sub) ->
    (List.map integer s, Option.map (List.map integer) sub)) edges in
  let records = List.map (fun (_, r) -> match r with C.LABELS l -> C.LABELS (completed m l) | r -> r) kinds in
  let log = { C.exponent = number (field "exponent" json); shift = number (field "exponent" header);
    edges; records } in
  let unit = ("exponent", show log.C.exponent) in
  match C.check low m log with
  | C.Rejected ->
      say [("verdict", "\"rejected\""); ("reason", Printf.sprintf "%S" (culprit low log (List.map fst kinds)))];
      exit 1
  | C.Bound b -> say [("verdict", "\"bound\""); ("bound", show b); unit]
  | C.Between (b, c, _) -> say [("verdict", "\"between\""); ("bound", show b); ("energy", show c); unit]
  | C.Optimal (b, _) -> say [("verdict", "\"optimal\""); ("bound", show b); ("energy", show b); unit]
  | C.Infeasible -> say [("verdict", "\"infeasible\"")]

let () =
  Gc.set { (Gc.get ()) with Gc.minor_heap_size = 1 lsl 22; space_overhead = 300 };
  try main () with
  | Inflate.Damaged | Invalid_argument _ ->
      say [("verdict", "\"rejected\""); ("reason", "\"the log was damaged or altered\"")]; exit 1
  | Bad message | Sys_error message ->
      say [("verdict", "\"rejected\""); ("reason", Printf.sprintf "%S" message)]; exit 1
