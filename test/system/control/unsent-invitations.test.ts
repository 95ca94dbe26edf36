import { randomBytes } from 'node:crypto';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { hashInvitationToken } from '../../../src/core/ids/invitation.ts';
import { freePort } from '../../support/free-port.ts';
import { startMailServer } from '../../support/mail/mail-server.ts';
import { type TemporaryFolder, temporaryFolder } from '../../support/temporary-folder.ts';
import { eventually } from '../support/deadline.ts';
import { type Installation, install } from '../support/installation.ts';
import { type Observer, observe } from '../support/observer.ts';
import { apply, integration, kubectl, tenant } from '../support/world.ts';

const LOGIN = { user: 'relay', password: 'secret' };

let installed: Installation;
let observer: Observer;
let keys: TemporaryFolder;
let mailPort: number;

beforeAll(async () => {
  [installed, keys, mailPort] = await Promise.all([install(), temporaryFolder('root-keys'), freePort()]);
  observer = observe(installed.cluster.kubeconfig);
  for (const name of ['root.key', 'root.key.2']) await writeFile(join(keys.path, name), randomBytes(32));
  const env = {
    SLUICE_ROOT_KEY_FILE: join(keys.path, 'root.key'),
    SLUICE_SMTP_URL: `smtp://${LOGIN.user}:${LOGIN.password}@127.0.0.1:${mailPort}`,
    SLUICE_SMTP_FROM: 'Shop Events <events@shop.example>',
    SLUICE_INVITATION_URL: 'https://partners.shop.example/invitation',
  };
  await installed.start({ role: 'controller', env });
});
afterAll(async () => {
  await observer?.close();
  await installed?.stop();
  await keys?.remove();
});

it('an invitation that is still waiting for the mail server is issued again when its root key is removed', async () => {
  const invited = { workspace: undefined, invitedEmail: 'ada@partner.example' };
  await apply(installed.cluster, [...tenant('shop'), integration('shop', 'ada', invited)]);
  await observer.until(['Integration', 'ada', 'shop', 'InvitationSent', 'False/SmtpFailed']);
  const tokenHash = () =>
    kubectl(installed.cluster, ['get', 'intg', 'ada', '-n', 'shop', '-o', 'jsonpath={.status.invitation.tokenHash}']);
  const before = await tokenHash();
  await rm(join(keys.path, 'root.key.2'));
  await eventually('the invitation is issued again', async () => (await tokenHash()) !== before);
  const mail = await startMailServer({ port: mailPort, login: LOGIN });
  try {
    const { value } = await eventually('the invitation is sent', async () => mail.received[0]?.body);
    const [token = ''] = value.match(/sinv_[A-Za-z0-9_-]{43}/) ?? [];
    expect(hashInvitationToken(token)).toBe(await tokenHash());
  } finally {
    await mail.close();
  }
});
