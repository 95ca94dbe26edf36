/** Contents and recipient of an invitation. */
export interface InvitationMail {
  /** One plain e-mail address. */
  readonly to: string;
  /** Name of the Workspace that invites: a DNS label. */
  readonly producer: string;
  readonly token: string;
  /** RFC 3339. */
  readonly expiresAt: string;
}

export interface Message {
  readonly subject: string;
  /** Plain text, lines separated by `\n`. */
  readonly text: string;
}

/**
 * Writes the invitation as plain text: it needs no escaping, and opening it fetches nothing.
 *
 * @param acceptUrl page that accepts the token; undefined: the mail explains how to accept over REST
 */
export function writeInvitation(
  { producer, token, expiresAt }: InvitationMail,
  acceptUrl: string | undefined,
): Message {
  const until = formatTime(expiresAt);
  const how =
    acceptUrl === undefined
      ? [
          `Accept it until ${until}: sign in and send this`,
          'to the REST API of the service that invites you:',
          '',
          '  POST /waas/invitations/accept',
          `  {"token": "${token}"}`,
          '',
          'To decline, send the same to /waas/invitations/decline.',
        ]
      : [`Accept or decline it here until ${until}:`, '', addToken(acceptUrl, token)];
  const text = [
    `${producer} invites you to receive its events.`,
    '',
    ...how,
    '',
    'Anyone who has the token can use it once: do not forward this mail.',
    'If you did not expect this invitation, ignore it. It expires.',
    '',
  ];
  return { subject: `Invitation to receive events from ${producer}`, text: text.join('\n') };
}

/** Adds the token as fragment. Browsers do not send it, so the token reaches neither access logs nor referrers. */
function addToken(acceptUrl: string, token: string): string {
  const url = new URL(acceptUrl);
  url.hash = `token=${token}`;
  return url.href;
}

/** `5 December 2026, 17:23 UTC`. */
function formatTime(time: string): string {
  const format = new Intl.DateTimeFormat('en-GB', {
    day: 'numeric',
    month: 'long',
    year: 'numeric',
    hour: '2-digit',
    minute: '2-digit',
    timeZone: 'UTC',
  });
  const parts = new Map(format.formatToParts(new Date(time)).map(({ type, value }) => [type, value]));
  const [day, month, year] = [parts.get('day'), parts.get('month'), parts.get('year')];
  return `${day} ${month} ${year}, ${parts.get('hour')}:${parts.get('minute')} UTC`;
}
