// What is attached to a question: pictures and sound, by the file button, dropped,
// pasted, or spoken into the microphone.
import { bytes } from './format.js';

const MOST = 20 << 20; // bytes of one; the door has bounds of its own
const formats = {
  'audio/mpeg': 'mp3',
  'audio/mp3': 'mp3',
  'audio/wav': 'wav',
  'audio/x-wav': 'wav',
  'audio/wave': 'wav',
  'audio/flac': 'flac',
  'audio/ogg': 'ogg',
};

// read takes a file of a kind that may be attached, as a description and its bytes.
export async function read(file, kinds) {
  const kind = file.type.split('/')[0];
  if (!kinds.includes(kind)) throw new Error(`${file.name}: ${file.type || 'a file of no known kind'}; what can be taken here: ${kinds.join(', ')}`);
  if (file.size > MOST) throw new Error(`${file.name} has ${bytes(file.size)}; at most ${bytes(MOST)} can be attached`);
  const url = await new Promise((done, failed) => {
    const reader = new FileReader();
    reader.onload = () => done(reader.result);
    reader.onerror = () => failed(new Error(`${file.name} cannot be read`));
    reader.readAsDataURL(file);
  });
  return { name: file.name, kind, type: file.type, size: file.size, url, file };
}

// part is an attachment as a message has it.
export const part = (a) =>
  a.kind === 'image'
    ? { type: 'image_url', image_url: { url: a.url } }
    : {
        type: 'input_audio',
        input_audio: { data: a.url.slice(a.url.indexOf(',') + 1), format: formats[a.type] ?? a.type.split('/')[1].replace(/^x-/, '') },
      };

// content is a message: its words alone, or with what is attached.
export const content = (words, attached) => (attached.length ? [...attached.map(part), { type: 'text', text: words }] : words);

// canRecord reports whether this browser gives the page a microphone: it does for
// HTTPS and for this machine alone.
export const canRecord = () => Boolean(navigator.mediaDevices?.getUserMedia && globalThis.MediaRecorder);

// record listens until the returned function is called, which gives a WAV file: every
// engine reads that. heard() is called with the bytes so far.
export async function record(heard) {
  const stream = await navigator.mediaDevices.getUserMedia({ audio: true });
  const recorder = new MediaRecorder(stream);
  const pieces = [];
  let size = 0;
  recorder.ondataavailable = (e) => {
    pieces.push(e.data);
    heard((size += e.data.size));
  };
  const ended = new Promise((done) => {
    recorder.onstop = done;
  });
  recorder.start(250);
  return async () => {
    recorder.stop();
    await ended;
    for (const track of stream.getTracks()) track.stop();
    if (size === 0) throw new Error('nothing was heard yet');
    const context = new OfflineAudioContext(1, 1, 16_000);
    const sound = await context.decodeAudioData(await new Blob(pieces, { type: recorder.mimeType }).arrayBuffer());
    return new File([wav(sound.getChannelData(0), sound.sampleRate)], 'recording.wav', { type: 'audio/wav' });
  };
}

// wav is one channel of samples in 16 bits behind the 44 bytes of a head.
export function wav(samples, rate) {
  const out = new DataView(new ArrayBuffer(44 + samples.length * 2));
  const text = (at, words) => [...words].forEach((c, i) => out.setUint8(at + i, c.charCodeAt(0)));
  text(0, 'RIFF');
  out.setUint32(4, 36 + samples.length * 2, true);
  text(8, 'WAVEfmt ');
  out.setUint32(16, 16, true);
  out.setUint16(20, 1, true); // plain samples
  out.setUint16(22, 1, true); // of one channel
  out.setUint32(24, rate, true);
  out.setUint32(28, rate * 2, true);
  out.setUint16(32, 2, true);
  out.setUint16(34, 16, true);
  text(36, 'data');
  out.setUint32(40, samples.length * 2, true);
  samples.forEach((s, i) => out.setInt16(44 + i * 2, Math.max(-1, Math.min(1, s)) * 32_767, true));
  return out.buffer;
}
