/**
 * Names and values of the variables which Kubernetes sets in each pod for every Service in the namespace:
 * `<SERVICE>_SERVICE_HOST`, `<SERVICE>_SERVICE_PORT[_<NAME>]`, `<SERVICE>_PORT` and `<SERVICE>_PORT_<n>_TCP[_…]`
 * (Kubernetes, "Accessing the Service", environment variables).
 */
const FORMS: readonly { readonly name: RegExp; readonly value: RegExp }[] = [
  { name: /_SERVICE_HOST$/, value: /^[0-9a-fA-F.:]+$/ },
  { name: /_SERVICE_PORT(_[A-Z0-9_]+)?$/, value: /^\d+$/ },
  { name: /_PORT$/, value: /^(tcp|udp|sctp):\/\// },
  { name: /_PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?$/, value: /^/ },
];

/** Returns true if Kubernetes has set this variable for a Service. */
export function isServiceLink(name: string, value: string): boolean {
  return FORMS.some(form => form.name.test(name) && form.value.test(value));
}
