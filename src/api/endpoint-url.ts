import { z } from 'zod';
import { withRule } from './rules.ts';

const PORT = '6553[0-5]|655[0-2][0-9]|65[0-4][0-9]{2}|6[0-4][0-9]{3}|[1-5][0-9]{4}|[1-9][0-9]{0,3}';

// Neither `@` (user info) nor a backslash is allowed in the host. URL parsers in browsers treat the latter as `/`.
const ENDPOINT_URL = new RegExp(`^https?://([A-Za-z0-9._-]+|\\[[0-9A-Fa-f:.]+\\])(:(${PORT}))?([/?#][!-~]*)?$`);

/**
 * Returns the schema for the endpoint URL, which can have at most 2,048 characters. The address itself is checked when
 * the dispatcher connects.
 */
export function endpointUrl(): z.ZodString {
  return withRule(z.string().min(1).max(2048), {
    rule: `self.matches(r'${ENDPOINT_URL.source.replaceAll('\\/', '/')}')`,
    message:
      'must be an absolute URL in ASCII that starts with http:// or https://, without a user name or password and with a port of at most 65535',
    holds: value => ENDPOINT_URL.test(value),
  });
}
