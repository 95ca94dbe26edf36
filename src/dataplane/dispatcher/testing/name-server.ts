import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { type AddressInfo, createServer, isIPv4, type Socket } from 'node:net';

/** Question for the name server. `nth` counts questions for this name and type across UDP and TCP, starting at 1. */
export interface Question {
  readonly name: string;
  readonly type: 'A' | 'AAAA' | 'other';
  readonly nth: number;
  readonly over: 'udp' | 'tcp';
}

/** Answer to a question. If this is undefined, the server will not respond. */
export interface NameAnswer {
  /** Addresses to return. Only those of the requested family are sent, so the same answer works for both families. */
  readonly addresses?: readonly string[];
  /** Chain of names leading from the requested name to the name that has the addresses. */
  readonly cnames?: readonly string[];
  readonly rcode?: 'NOERROR' | 'SERVFAIL' | 'NXDOMAIN' | 'REFUSED';
  /** If set, the UDP answer just states that it was truncated. */
  readonly truncated?: boolean;
  readonly afterMs?: number;
}

export interface NameServer {
  /** `address:port`, in the same format as in `dns.Resolver.setServers`. */
  readonly address: string;
  readonly questions: readonly Question[];
  /** Returns the number of answers sent so far. */
  readonly answered: () => number;
  readonly close: () => Promise<void>;
}

const TYPE = { A: 1, CNAME: 5, AAAA: 28 } as const;
const RCODE = { NOERROR: 0, SERVFAIL: 2, NXDOMAIN: 3, REFUSED: 5 } as const;

function encodeName(name: string): Buffer {
  const labels = name.split('.').filter(label => label !== '');
  return Buffer.concat([
    ...labels.flatMap(label => [Buffer.from([label.length]), Buffer.from(label, 'latin1')]),
    Buffer.from([0]),
  ]);
}

function addressBytes(address: string): Buffer {
  if (isIPv4(address)) return Buffer.from(address.split('.').map(Number));
  const [head = '', tail] = address.split('::');
  const groups = (part: string | undefined) => (part === undefined || part === '' ? [] : part.split(':'));
  const [left, right] = [groups(head), groups(tail)];
  const all = [...left, ...Array.from({ length: 8 - left.length - right.length }, () => '0'), ...right];
  return Buffer.from(all.map(group => group.padStart(4, '0')).join(''), 'hex');
}

function record(name: string, type: number, data: Buffer): Buffer {
  const fixed = Buffer.alloc(10);
  fixed.writeUInt16BE(type, 0);
  fixed.writeUInt16BE(1, 2);
  // We use a TTL of 0 to prevent the answer from being cached.
  fixed.writeUInt16BE(data.length, 8);
  return Buffer.concat([encodeName(name), fixed, data]);
}

/** Reads name and type of the first question (RFC 1035, 4.1.2), as well as the position where it ends. */
function readQuestion(query: Buffer): { name: string; type: Question['type']; end: number } {
  const labels: string[] = [];
  let at = 12;
  for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length));
    at += 1 + length;
  }
  const type = query.readUInt16BE(at + 1);
  const known = type === TYPE.A ? 'A' : type === TYPE.AAAA ? 'AAAA' : 'other';
  return { name: labels.join('.'), type: known, end: at + 5 };
}

function encodeAnswer(query: Buffer, question: Question, end: number, answer: NameAnswer): Buffer {
  const names = [question.name, ...(answer.cnames ?? [])];
  const last = names.at(-1) as string;
  const wanted = (answer.addresses ?? []).filter(address => isIPv4(address) === (question.type === 'A'));
  const truncated = answer.truncated === true && question.over === 'udp';
  const records = truncated
    ? []
    : [
        ...names.slice(1).map((name, i) => record(names[i] as string, TYPE.CNAME, encodeName(name))),
        ...wanted.map(address => record(last, question.type === 'A' ? TYPE.A : TYPE.AAAA, addressBytes(address))),
      ];
  const header = Buffer.alloc(12);
  query.copy(header, 0, 0, 2);
  // Flags: this is an answer, recursion is available (RFC 1035, 4.1.1).
  header.writeUInt16BE(0x8180 | (truncated ? 0x0200 : 0) | RCODE[answer.rcode ?? 'NOERROR'], 2);
  header.writeUInt16BE(1, 4);
  header.writeUInt16BE(records.length, 6);
  return Buffer.concat([header, query.subarray(12, end), ...records]);
}

/** Starts a name server on loopback, answering over UDP and TCP according to the script. */
export async function startNameServer(script: (question: Question) => NameAnswer | undefined): Promise<NameServer> {
  const questions: Question[] = [];
  const counts = new Map<string, number>();
  const timers = new Set<NodeJS.Timeout>();
  const sockets = new Set<Socket>();
  let answered = 0;

  function take(query: Buffer, over: Question['over'], send: (answer: Buffer) => void): void {
    const { name, type, end } = readQuestion(query);
    const nth = (counts.get(`${type} ${name}`) ?? 0) + 1;
    counts.set(`${type} ${name}`, nth);
    const question = { name, type, nth, over };
    questions.push(question);
    const answer = script(question);
    if (answer === undefined) return;
    const timer = setTimeout(() => {
      timers.delete(timer);
      answered += 1;
      send(encodeAnswer(query, question, end, answer));
    }, answer.afterMs ?? 0);
    timers.add(timer);
  }

  const tcp = createServer(socket => {
    sockets.add(socket);
    socket.on('error', () => {}).on('close', () => sockets.delete(socket));
    let received: Buffer = Buffer.alloc(0);
    socket.on('data', chunk => {
      received = Buffer.concat([received, chunk]);
      while (received.length >= 2 && received.length >= 2 + received.readUInt16BE(0)) {
        const end = 2 + received.readUInt16BE(0);
        take(received.subarray(2, end), 'tcp', answer => {
          const length = Buffer.alloc(2);
          length.writeUInt16BE(answer.length);
          socket.write(Buffer.concat([length, answer]));
        });
        received = received.subarray(end);
      }
    });
  });
  tcp.listen(0, '127.0.0.1');
  await once(tcp, 'listening');
  const { port } = tcp.address() as AddressInfo;
  const udp = createSocket('udp4', (query, from) => {
    take(query, 'udp', answer => udp.send(answer, from.port, from.address));
  });
  udp.bind(port, '127.0.0.1');
  await once(udp, 'listening');

  return {
    address: `127.0.0.1:${port}`,
    questions,
    answered: () => answered,
    async close() {
      for (const timer of timers) clearTimeout(timer);
      for (const socket of sockets) socket.destroy();
      udp.close();
      tcp.close();
      await Promise.all([once(udp, 'close'), once(tcp, 'close')]);
    },
  };
}
