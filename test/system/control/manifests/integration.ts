import { casesOf } from './case.ts';

const { accepts, refuses, acceptsChange, refusesChange } = casesOf('Integration', {});

const invitedEmail = 'ada@partner.example';

export const integrationCases = [
  accepts('an invitation', { invitedEmail }),
  accepts('a direct grant', { workspace: 'globex' }),
  accepts('an invitation that was accepted', { invitedEmail, workspace: 'globex' }),
  accepts('an address with a plus and an apostrophe', { invitedEmail: "o'hara+sluice@partner.example" }),
  refuses('neither address nor workspace', {}, 'must have invitedEmail (an invitation) or workspace (a direct grant)'),
  refuses('no address at all', { invitedEmail: 'ada' }, 'must be an email address such as ada@example.com'),
  refuses('two addresses', { invitedEmail: 'a@b.example,c@d.example' }, 'must be an email address'),
  refuses(
    'an address that would add a header to the mail',
    { invitedEmail: 'a@b.example\r\nBcc: c@d.example' },
    'must be an email address',
  ),
  refuses(
    'an address of 255 characters',
    { invitedEmail: `${'a'.repeat(242)}@mail.example` },
    'spec.invitedEmail: Too long',
  ),
  refuses('a workspace that can be no name', { workspace: 'Globex Inc.' }, 'spec.workspace'),
  acceptsChange('accepting', { invitedEmail }, { invitedEmail, workspace: 'globex' }),
  acceptsChange('erasing the address after acceptance', { invitedEmail, workspace: 'globex' }, { workspace: 'globex' }),
  refusesChange(
    'erasing the address before acceptance',
    { invitedEmail, declined: true },
    { declined: true },
    'must have invitedEmail',
  ),
  refusesChange(
    'changing the address',
    { invitedEmail },
    { invitedEmail: 'eve@partner.example' },
    'you can remove invitedEmail, but not change or add it later',
  ),
  refusesChange(
    'setting another address after erasing the first',
    { workspace: 'globex' },
    { workspace: 'globex', invitedEmail },
    'you can remove invitedEmail, but not change or add it later',
  ),
  refusesChange(
    'granting another workspace',
    { invitedEmail, workspace: 'globex' },
    { invitedEmail, workspace: 'initech' },
    'workspace is immutable after it is set',
  ),
  refusesChange(
    'removing the grant in order to grant another workspace later',
    { invitedEmail, workspace: 'globex' },
    { invitedEmail },
    'workspace is immutable after it is set',
  ),
  acceptsChange('revoking', { workspace: 'globex' }, { workspace: 'globex', revoked: true }),
  refusesChange(
    'un-revoking',
    { workspace: 'globex', revoked: true },
    { workspace: 'globex', revoked: false },
    'revoked cannot be changed back to false after it is set to true',
  ),
  refusesChange(
    'un-revoking by removing the field',
    { workspace: 'globex', revoked: true },
    { workspace: 'globex' },
    'revoked cannot be changed back to false',
  ),
  refusesChange(
    'un-declining',
    { invitedEmail, declined: true },
    { invitedEmail },
    'declined cannot be changed back to false',
  ),
];
