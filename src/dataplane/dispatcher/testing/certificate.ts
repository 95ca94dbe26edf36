import { createPublicKey, generateKeyPairSync, randomBytes, sign } from 'node:crypto';

/** Encodes a DER value (X.690) from tag, length, and content. */
function der(tag: number, ...content: Uint8Array[]): Buffer {
  const body = Buffer.concat(content);
  const length =
    body.length < 128 ? [body.length] : body.length < 256 ? [0x81, body.length] : [0x82, body.length >> 8, body.length];
  return Buffer.concat([Buffer.from([tag, ...length]), body]);
}

const sequence = (...content: Uint8Array[]) => der(0x30, ...content);
const oid = (hex: string) => der(0x06, Buffer.from(hex, 'hex'));
const utcTime = (ms: number) =>
  der(0x17, Buffer.from(`${new Date(ms).toISOString().slice(2, 19).replace(/[-:T]/g, '')}Z`, 'latin1'));

const ECDSA_WITH_SHA256 = sequence(oid('2a8648ce3d040302'));
const COMMON_NAME = oid('550403');
const SUBJECT_ALT_NAME = oid('551d11');

/**
 * Creates a self-signed P-256 certificate (RFC 5280) for `names`, in PEM together with its key. Valid for a day around
 * the current time unless `validMs` is set. We generate a new one on every run so that keys don't need to be committed.
 */
export function createCertificate(names: {
  readonly dns: readonly string[];
  readonly ipv4?: readonly number[][];
  readonly validMs?: readonly [from: number, to: number];
}): { cert: string; key: string } {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  // The subject must be unique. Issuers are looked up by subject, so with two equal subjects the wrong certificate
  // could end up being used.
  const commonName = Buffer.from(`test endpoint ${randomBytes(4).toString('hex')}`);
  const subject = sequence(der(0x31, sequence(COMMON_NAME, der(0x0c, commonName))));
  const alternatives = sequence(
    ...names.dns.map(name => der(0x82, Buffer.from(name, 'latin1'))),
    ...(names.ipv4 ?? []).map(octets => der(0x87, Buffer.from(octets))),
  );
  const dayMs = 86_400_000;
  const [fromMs, toMs] = names.validMs ?? [Date.now() - dayMs, Date.now() + dayMs];
  const serial = Buffer.concat([Buffer.from([1]), randomBytes(8)]);
  const body = sequence(
    der(0xa0, der(0x02, Buffer.from([2]))),
    der(0x02, serial),
    ECDSA_WITH_SHA256,
    subject,
    sequence(utcTime(fromMs), utcTime(toMs)),
    subject,
    createPublicKey(privateKey).export({ type: 'spki', format: 'der' }),
    der(0xa3, sequence(sequence(SUBJECT_ALT_NAME, der(0x04, alternatives)))),
  );
  const signature = der(0x03, Buffer.from([0]), sign('sha256', body, privateKey));
  const base64 = sequence(body, ECDSA_WITH_SHA256, signature).toString('base64').replace(/.{64}/g, '$&\n');
  return {
    cert: `-----BEGIN CERTIFICATE-----\n${base64}\n-----END CERTIFICATE-----\n`,
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  };
}
