(* Decompression of a zlib stream (RFC 1950, 1951). A mistake here can only reject a proof. *)

exception Damaged

let lengths = [| 3;4;5;6;7;8;9;10;11;13;15;17;19;23;27;31;35;43;51;59;67;83;99;115;131;163;195;227;258 |]
let length_bits = [| 0;0;0;0;0;0;0;0;1;1;1;1;2;2;2;2;3;3;3;3;4;4;4;4;5;5;5;5;0 |]
let distances = [| 1;2;3;4;5;7;9;13;17;25;33;49;65;97;129;193;257;385;513;769;1025;1537;2049;3073;4097;
  6145;8193;12289;16385;24577 |]
let distance_bits = [| 0;0;0;0;1;1;2;2;3;3;4;4;5;5;6;6;7;7;8;8;9;9;10;10;11;11;12;12;13;13 |]

(* canonical Huffman code: for the next 15 bits, symbol * 16 + length of its code; 0 if there is none *)
let code sizes =
  let count = Array.make 16 0 in
  Array.iter (fun s -> if s > 0 then count.(s) <- count.(s) + 1) sizes;
  let next = Array.make 16 0 in
  for k = 2 to 15 do next.(k) <- (next.(k - 1) + count.(k - 1)) lsl 1 done;
  let table = Array.make 32768 0 in
  Array.iteri (fun i s ->
    if s > 0 then begin
      let reversed = ref 0 in
      for k = 0 to s - 1 do if next.(s) land (1 lsl k) <> 0 then reversed := !reversed lor (1 lsl (s - 1 - k)) done;
      next.(s) <- next.(s) + 1;
      let at = ref !reversed in
      while !at < 32768 do table.(!at) <- 16 * i + s; at := !at + (1 lsl s) done
    end) sizes;
  table

let inflate text first =
  let out = Buffer.create (4 * String.length text) in
  let at = ref first and held = ref 0 and hold = ref 0 in
  let fill n =
    while !held < n && !at < String.length text do
      hold := !hold lor (Char.code (String.unsafe_get text !at) lsl !held);
      held := !held + 8; incr at
    done in
  let drop n = if !held < n then raise Damaged; hold := !hold lsr n; held := !held - n in
  let bits n = fill n; let v = !hold land ((1 lsl n) - 1) in drop n; v in
  let symbol table =
    fill 15;
    let found = table.(!hold land 32767) in
    if found = 0 then raise Damaged;
    drop (found land 15); found lsr 4 in
  let rec block literal distance =
    let s = symbol literal in
    if s < 256 then (Buffer.add_char out (Char.chr s); block literal distance)
    else if s > 256 then begin
      let k = s - 257 in
      let size = lengths.(k) + bits length_bits.(k) in
      let d = symbol distance in
      let back = distances.(d) + bits distance_bits.(d) in
      let from = Buffer.length out - back in
      if from < 0 then raise Damaged;
      for i = 0 to size - 1 do Buffer.add_char out (Buffer.nth out (from + i)) done;
      block literal distance
    end in
  let fixed () =
    code (Array.init 288 (fun i -> if i < 144 then 8 else if i < 256 then 9 else if i < 280 then 7 else 8)),
    code (Array.make 30 5) in
  let dynamic () =
    let nl = bits 5 + 257 in
    let nd = bits 5 + 1 in
    let nc = bits 4 + 4 in
    let order = [| 16;17;18;0;8;7;9;6;10;5;11;4;12;3;13;2;14;1;15 |] in
    let sizes = Array.make 19 0 in
    for k = 0 to nc - 1 do sizes.(order.(k)) <- bits 3 done;
    let codes = code sizes in
    let all = Array.make (nl + nd) 0 in
    let k = ref 0 in
    let fill value n = for _ = 1 to n do all.(!k) <- value; incr k done in
    while !k < nl + nd do
      match symbol codes with
      | 16 -> let v = all.(!k - 1) in fill v (3 + bits 2)
      | 17 -> fill 0 (3 + bits 3)
      | 18 -> fill 0 (11 + bits 7)
      | s -> fill s 1
    done;
    code (Array.sub all 0 nl), code (Array.sub all nl nd) in
  let rec go () =
    let last = bits 1 in
    (match bits 2 with
     | 0 ->
         at := !at - !held / 8; hold := 0; held := 0;
         let size = Char.code text.[!at] lor (Char.code text.[!at + 1] lsl 8) in
         Buffer.add_string out (String.sub text (!at + 4) size);
         at := !at + 4 + size
     | 1 -> let l, d = fixed () in block l d
     | 2 -> let l, d = dynamic () in block l d
     | _ -> raise Damaged);
    if last = 0 then go () in
  go (); Buffer.contents out

let zlib text first = inflate text (first + 2)
