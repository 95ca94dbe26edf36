/** AllowedMethods holds the registered methods by path, which lets us answer 405 rather than 404. */
interface AllowedMethods {
  readonly add: (method: string | readonly string[], url: string) => void;
  /**
   * If the path supports other methods, this returns the value to use for the `Allow` header. If the path is unknown,
   * it returns undefined.
   */
  readonly find: (path: string) => string | undefined;
}

/**
 * Creates a list of methods, which is empty. Routes are registered using a pattern such as `/events/:tenant/:queue`.
 * Each parameter must be a whole segment.
 */
export function createAllowedMethods(): AllowedMethods {
  const routes = new Map<string, { pattern: RegExp; methods: Set<string> }>();
  return {
    add(method, url) {
      const route = routes.get(url) ?? {
        pattern: new RegExp(`^${url.replace(/[.*+?^${}()|[\]\\]/g, '\\$&').replace(/:[^/]+/g, '[^/]+')}$`),
        methods: new Set<string>(),
      };
      for (const each of typeof method === 'string' ? [method] : method) route.methods.add(each);
      routes.set(url, route);
    },
    find(path) {
      const methods = [...routes.values()]
        .filter(({ pattern }) => pattern.test(path))
        .flatMap(route => [...route.methods]);
      return methods.length === 0 ? undefined : [...new Set(methods)].toSorted().join(', ');
    },
  };
}
