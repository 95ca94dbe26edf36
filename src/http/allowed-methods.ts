/** AllowedMethods holds the registered methods by path, which lets us respond with 405 rather than 404. */
interface AllowedMethods {
  readonly add: (method: string | readonly string[], url: string) => void;
  /**
   * Returns the value of the `Allow` header if the path supports other methods, or undefined if the path is unknown.
   */
  readonly find: (path: string) => string | undefined;
}

/**
 * Creates an empty list of methods. Routes are registered using a pattern such as `/events/:tenant/:queue`. Each
 * parameter must be a complete segment.
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
