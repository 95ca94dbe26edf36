import { spawnSync } from 'node:child_process';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { ConfigError } from '../config/config.ts';
import { anyAddress, listenAt } from './listening.ts';

/** Simulates a kernel without IPv6: a seccomp filter refuses socket(AF_INET6) with EAFNOSUPPORT. */
const WITHOUT_IPV6 = `
import ctypes, os, struct, sys
AF_INET6, EAFNOSUPPORT, ALLOW, ERRNO = 10, 97, 0x7fff0000, 0x00050000
socket = {'x86_64': 41, 'aarch64': 198}[os.uname().machine]
program = b''.join(struct.pack('HBBI', *each) for each in [
    (0x20, 0, 0, 0), (0x15, 0, 3, socket), (0x20, 0, 0, 16), (0x15, 0, 1, AF_INET6),
    (0x06, 0, 0, ERRNO | EAFNOSUPPORT), (0x06, 0, 0, ALLOW)])
code = ctypes.create_string_buffer(program, len(program))
class Filter(ctypes.Structure):
    _fields_ = [('length', ctypes.c_ushort), ('code', ctypes.c_void_p)]
libc = ctypes.CDLL(None, use_errno=True)
if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, ctypes.byref(Filter(6, ctypes.addressof(code))), 0, 0):
    sys.exit(77)
os.execv(sys.argv[1], sys.argv[1:])
`;

function listenWithoutIpv6(source: string) {
  const { status, stdout, stderr } = spawnSync(
    'python3',
    ['-c', WITHOUT_IPV6, process.execPath, '--input-type=module-typescript', '-e', source],
    { cwd: join(import.meta.dirname, '..', '..'), encoding: 'utf8' },
  );
  return { status, stdout: stdout.trim(), stderr };
}

test('listens on all IPv4 addresses on a kernel without IPv6', { timeout: 60_000 }, ({ skip }) => {
  const refused = listenWithoutIpv6(`
    import { createServer } from 'node:net';
    createServer().on('error', ({ code }) => console.log(code)).listen(0, '::');`);
  if (refused.status !== 0) skip(`python3 cannot set a seccomp filter here: ${refused.stderr}`);
  expect(refused.stdout).toBe('EAFNOSUPPORT');
  const chosen = listenWithoutIpv6(`
    import { createServer } from 'node:net';
    import { anyAddress } from './src/roles/listening.ts';
    createServer().listen(0, await anyAddress(), function () { console.log(this.address().address); this.close(); });`);
  expect(chosen).toMatchObject({ status: 0, stdout: '0.0.0.0' });
});

test('listens on all IPv6 and IPv4 addresses elsewhere, and keeps the port free', async () => {
  const probe = createServer();
  const family = await new Promise<string>((resolve, reject) => {
    probe.once('error', reject);
    probe.listen(0, () => resolve((probe.address() as AddressInfo).family));
  });
  onTestFinished(() => void probe.close());
  expect(await anyAddress()).toBe(family === 'IPv6' ? '::' : '0.0.0.0');
});

test('reports the variable of a port that is in use', async () => {
  const listen = (port: number) =>
    new Promise<number>((resolve, reject) => {
      const server = createServer().once('error', reject);
      server.listen(port, () => resolve((server.address() as AddressInfo).port));
      onTestFinished(() => void server.close());
    });
  const port = await listenAt('SLUICE_OPS_PORT', 0, () => listen(0));
  const taken = listenAt('SLUICE_OPS_PORT', port, () => listen(port));
  await expect(taken).rejects.toBeInstanceOf(ConfigError);
  await expect(taken).rejects.toThrow(`SLUICE_OPS_PORT: port ${port} is already in use`);
});

test('reports the variable of an address that the machine does not have', async () => {
  const listen = () =>
    new Promise<void>((resolve, reject) => {
      createServer().once('error', reject).listen({ port: 0, host: '203.0.113.9' }, resolve);
    });
  const wrong = listenAt('SLUICE_OPS_PORT', 0, listen);
  await expect(wrong).rejects.toBeInstanceOf(ConfigError);
  await expect(wrong).rejects.toThrow('SLUICE_OPS_HOST: 203.0.113.9 is not an address of this machine');
});
