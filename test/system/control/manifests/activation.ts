import { casesOf } from './case.ts';

const { accepts, refuses, acceptsChange, refusesChange } = casesOf('Activation', {
  integration: 'globex',
  groupKey: 'customer-42',
});

const GROUP_KEY = 'must be 1 to 256 bytes of UTF-8 without control characters and without leading or trailing spaces';

export const activationCases = [
  accepts('integration and group key', {}),
  accepts('a group key of 256 bytes', { groupKey: 'x'.repeat(256) }),
  accepts('a group key of any language, with spaces inside', { groupKey: 'Łódź / 顧客 42 🦊' }),
  accepts('a group key that YAML could take for a number', { groupKey: '42' }),
  refuses('a number', { groupKey: 42 }, 'spec.groupKey'),
  refuses('a group key of 257 bytes', { groupKey: 'x'.repeat(257) }, 'spec.groupKey: Too long'),
  refuses('a group key of 129 characters and 258 bytes', { groupKey: 'é'.repeat(129) }, GROUP_KEY),
  refuses('an empty group key', { groupKey: '' }, 'spec.groupKey'),
  refuses('a group key with a NUL', { groupKey: 'a\u0000b' }, GROUP_KEY),
  refuses('a group key with a line break', { groupKey: 'a\nb' }, GROUP_KEY),
  refuses('a group key with a control character of C1', { groupKey: 'a\u0085b' }, GROUP_KEY),
  refuses('a group key with a space in front', { groupKey: ' a' }, GROUP_KEY),
  refuses('a group key with a no-break space at its end', { groupKey: 'a\u00a0' }, GROUP_KEY),
  refuses('an integration with a namespace', { integration: 'acme/globex' }, 'spec.integration'),
  acceptsChange('revoking, and activating again', { revoked: true }, { revoked: false }),
  refusesChange('another integration', {}, { integration: 'initech' }, 'integration is immutable'),
  refusesChange('another group key', {}, { groupKey: 'customer-43' }, 'groupKey is immutable'),
];
