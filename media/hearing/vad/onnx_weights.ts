/**
 * Reads the weights out of an ONNX file: the float tensors of the graph's initializers, by name.
 * Only what that takes of Protocol Buffers and of onnx.proto3 (ModelProto.graph 7,
 * GraphProto.initializer 5, TensorProto dims 1, data_type 2, name 8, raw_data 9); all else is skipped.
 */

export interface Tensor {
  dims: readonly number[];
  values: Float32Array;
}

const floatType = 1;

/** @throws Error when the bytes are no such file */
export function readOnnxWeights(bytes: Uint8Array): Map<string, Tensor> {
  const weights = new Map<string, Tensor>();
  for (const graph of fieldsOf(bytes)) {
    if (graph.number !== 7 || !graph.bytes) continue;
    for (const initializer of fieldsOf(graph.bytes)) {
      if (initializer.number !== 5 || !initializer.bytes) continue;
      const { name, tensor } = readTensor(initializer.bytes);
      if (tensor) weights.set(name, tensor);
    }
  }
  return weights;
}

function readTensor(bytes: Uint8Array): { name: string; tensor: Tensor | undefined } {
  const dims: number[] = [];
  let name = "";
  let type = 0;
  let raw: Uint8Array | undefined;
  for (const field of fieldsOf(bytes)) {
    if (field.number === 1) dims.push(...(field.bytes ? packedVarints(field.bytes) : [field.value]));
    else if (field.number === 2) type = field.value;
    else if (field.number === 8 && field.bytes) name = new TextDecoder().decode(field.bytes);
    else if (field.number === 9) raw = field.bytes;
  }
  if (type !== floatType || !raw) return { name, tensor: undefined };
  const count = dims.reduce((product, dim) => product * dim, 1);
  if (raw.length !== count * 4) {
    throw new Error(`Cannot read weights ${name}: expected ${count * 4} bytes, found ${raw.length}`);
  }
  const view = new DataView(raw.buffer, raw.byteOffset, raw.byteLength);
  const values = new Float32Array(count);
  for (let i = 0; i < count; i++) values[i] = view.getFloat32(4 * i, true);
  return { name, tensor: { dims, values } };
}

/** One field of a message: a number, or the bytes of a string, message or packed list. */
interface Field {
  number: number;
  value: number;
  bytes: Uint8Array | undefined;
}

function* fieldsOf(bytes: Uint8Array): Generator<Field> {
  const reader = { bytes, at: 0 };
  while (reader.at < bytes.length) {
    const key = varint(reader);
    const number = Math.floor(key / 8);
    const wireType = key % 8;
    if (wireType === 0) yield { number, value: varint(reader), bytes: undefined };
    else if (wireType === 1) reader.at += 8;
    else if (wireType === 5) reader.at += 4;
    else if (wireType === 2) {
      const length = varint(reader);
      const end = reader.at + length;
      if (end > bytes.length) throw new Error("Cannot read this ONNX file: it is cut off");
      yield { number, value: 0, bytes: bytes.subarray(reader.at, end) };
      reader.at = end;
    } else throw new Error(`Cannot read this ONNX file: unknown wire type ${wireType}`);
  }
}

function packedVarints(bytes: Uint8Array): number[] {
  const reader = { bytes, at: 0 };
  const values: number[] = [];
  while (reader.at < bytes.length) values.push(varint(reader));
  return values;
}

function varint(reader: { bytes: Uint8Array; at: number }): number {
  let value = 0;
  for (let scale = 1; ; scale *= 128) {
    const byte = reader.bytes[reader.at++];
    if (byte === undefined || scale > 2 ** 63) throw new Error("Cannot read this ONNX file: a number is cut off");
    value += (byte & 0x7f) * scale;
    if (byte < 0x80) return value;
  }
}
