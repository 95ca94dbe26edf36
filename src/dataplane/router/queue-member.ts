/** The member of a queue in the routers' hint index. */
export function queueMember(tenant: string, queue: string): string {
  return `${tenant}:${queue}`;
}
