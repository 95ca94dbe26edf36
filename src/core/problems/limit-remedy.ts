/** Returns the sentence about who can raise a limit of an account. @param limit its name in `spec.limits` */
export function remedyOfLimit(limit: string): string {
  return `To raise it, ask the administrator to change spec.limits.${limit} of the Account.`;
}
