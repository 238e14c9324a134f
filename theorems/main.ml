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

let decimal text =
  let negative = text <> "" && text.[0] = '-' in
  let digits = if negative then String.sub text 1 (String.length text - 1) else text in
  if digits = "" then fail "an empty number";
  String.iter (fun c -> if c < '0' || c > '9' then fail ("not an integer: " ^ text)) digits;
  let n = String.length digits in
  let rec go at acc =
    if at >= n then acc
    else
      let size = min 15 (n - at) in
      let part = int_of_string (let s = String.sub digits at size in
                                let rec skip i = if i < size - 1 && s.[i] = '0' then skip (i + 1) else i in
                                let i = skip 0 in String.sub s i (size - i)) in
      let scale = C.Z.pow (integer 10) (integer size) in
      go (at + size) (C.Z.add (C.Z.mul acc scale) (integer part))
  in
  let value = go 0 C.Z0 in
  if negative then C.Z.opp value else value

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

let model json =
  if field "format" json <> Text "softmap integer model" then fail "not an integer model of softmap";
  if field "version" json <> Number "1" then fail "another version of the integer model";
  let unary = List.map (fun row -> List.map cost (list row)) (list (field "unary" json)) in
  let sizes = Array.of_list (List.map List.length unary) in
  let factor one =
    let scope = List.map small (list (field "scope" one)) in
    let size v = if v < 0 || v >= Array.length sizes then fail "no such variable" else sizes.(v) in
    let costs = List.map cost (list (field "costs" one)) in
    (List.map (fun v -> positive (v + 1)) scope, table (List.map size scope) costs) in
  { C.unary; factors = List.map factor (list (field "factors" json));
    constant = number (field "constant" json) }

let edge json = match json with
  | List [factor; Null] -> (number factor, None)
  | List [factor; axis] -> (number factor, Some (number axis))
  | _ -> fail "an edge is a factor and an axis"

(* --- the log ------------------------------------------------------------------------------------ *)

let names = [| "LOAD"; "REMOVE"; "PERSISTENT"; "SPLIT"; "SUBSTITUTE"; "ELIMINATE"; "SHIFT"; "COMPONENT";
  "END"; "CUT"; "DIVE"; "BRANCH"; "CLOSE"; "LEAVE"; "STEP"; "COMBINE"; "DUAL"; "PIECE"; "LABELS";
  "CONCLUDE"; "HARD"; "SPINS" |]
let arrays = [| 1; 2; 2; 1; 2; 1; 2; 2; 0; 1; 1; 1; 0; 0; 5; 3; 3; 3; 1; 2; 0; 4 |]

let record kind found = match kind, found with
  | 1, [a] -> C.LOAD a | 2, [a; b] -> C.REMOVE (a, b) | 3, [a; b] -> C.PERSISTENT (a, b)
  | 4, [a] -> C.SPLIT a | 5, [a; b] -> C.SUBSTITUTE (a, b) | 6, [a] -> C.ELIMINATE a
  | 7, [a; b] -> C.SHIFT (a, b) | 8, [a; b] -> C.COMPONENT (a, b) | 9, [] -> C.END
  | 10, [a] -> C.CUT a | 11, [a] -> C.DIVE a | 12, [a] -> C.BRANCH a | 13, [] -> C.CLOSE
  | 14, [] -> C.LEAVE | 15, [a; b; c; d; e] -> C.STEP (a, b, c, d, e)
  | 16, [a; b; c] -> C.COMBINE (a, b, c) | 17, [a; b; c] -> C.DUAL (a, b, c)
  | 18, [a; b; c] -> C.PIECE (a, b, c) | 19, [a] -> C.LABELS a | 20, [a; b] -> C.CONCLUDE (a, b)
  | 21, [] -> C.HARD
  | 22, _ -> fail "a record, SPINS: this rule is not covered by the proved checker"
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
               | C.PIECE _ -> false | C.DUAL (_ :: _, _, _) -> false | _ -> true in
             Printf.sprintf "record %d, %s%s" k names.(kind - 1)
               (if covered then ", is not accepted"
                else ": this rule is not covered by the proved checker"))
    | _, _ ->
        let short r = match r with
          | C.LABELS l -> List.length l < List.length m.C.unary | _ -> false in
        if List.exists short log.C.records
        then "the end, LABELS without chain variables: this rule is not covered by the proved checker"
        else "the end of the log or its conclusion is not accepted" in
  go 1 C.initial kinds log.C.records

let main () =
  if Array.length Sys.argv <> 3 then (prerr_endline "usage: check MODEL.json LOG"; exit 2);
  let json = parse (read Sys.argv.(1)) in
  let m = model json in
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
  let log = { C.exponent = number (field "exponent" json); shift = number (field "exponent" header);
    edges = List.map edge (list (field "edges" json)); records = List.map snd kinds } in
  let unit = ("exponent", show log.C.exponent) in
  match C.check m log with
  | C.Rejected ->
      say [("verdict", "\"rejected\""); ("reason", Printf.sprintf "%S" (culprit m log (List.map fst kinds)))];
      exit 1
  | C.Bound b -> say [("verdict", "\"bound\""); ("bound", show b); unit]
  | C.Between (b, c, _) -> say [("verdict", "\"between\""); ("bound", show b); ("energy", show c); unit]
  | C.Optimal (b, _) -> say [("verdict", "\"optimal\""); ("bound", show b); ("energy", show b); unit]
  | C.Infeasible -> say [("verdict", "\"infeasible\"")]

let () =
  try main () with
  | Inflate.Damaged | Invalid_argument _ ->
      say [("verdict", "\"rejected\""); ("reason", "\"the log was damaged or altered\"")]; exit 1
  | Bad message | Sys_error message ->
      say [("verdict", "\"rejected\""); ("reason", Printf.sprintf "%S" message)]; exit 1
