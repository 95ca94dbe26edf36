/** The content and the recipient of an invitation. */
export interface InvitationMail {
  /** A single plain email address. */
  readonly to: string;
  /** The name of the Workspace sending the invitation. Always a DNS label. */
  readonly producer: string;
  readonly token: string;
  /** RFC 3339. */
  readonly expiresAt: string;
}

export interface Message {
  readonly subject: string;
  /** Plain text with lines separated by `\n`. */
  readonly text: string;
}

/**
 * Returns the invitation as plain text. As a result, nothing needs to be escaped. There is no external content to load.
 * @param acceptUrl page that accepts the token. If undefined, the email explains how to use the REST API instead
 */
export function writeInvitation(
  { producer, token, expiresAt }: InvitationMail,
  acceptUrl: string | undefined,
): Message {
  const until = formatTime(expiresAt);
  const how =
    acceptUrl === undefined
      ? [
          `You can accept the invitation until ${until}.`,
          'Sign in and send the following request to the REST API of the service:',
          '',
          '  POST /waas/invitations/accept',
          `  {"token": "${token}"}`,
          '',
          'To decline it, send the same body to /waas/invitations/decline.',
        ]
      : [`You can accept or decline the invitation here until ${until}:`, '', addToken(acceptUrl, token)];
  const text = [
    `${producer} has invited you to receive its events.`,
    '',
    ...how,
    '',
    'Anyone with this token can use it once, so do not forward this email.',
    'If you did not expect this invitation, you can ignore this email.',
    '',
  ];
  return { subject: `Invitation to receive events from ${producer}`, text: text.join('\n') };
}

/**
 * The token is added as a fragment. Since browsers don't send fragments, it will not show up in access logs or
 * referrers.
 */
function addToken(acceptUrl: string, token: string): string {
  const url = new URL(acceptUrl);
  url.hash = `token=${token}`;
  return url.href;
}

/** For example, `5 December 2026, 17:23 UTC`. */
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
