/** Where the tables live. */
export type DatabaseTarget =
  | { readonly dialect: 'sqlite'; readonly path: string }
  | { readonly dialect: 'postgres'; readonly url: string; readonly shownAs: string }

/** Parses `database-url` (STORE-1). Undefined if it is neither `sqlite:<path>` nor `postgres://…`. */
export function parseDatabaseUrl(text: string): DatabaseTarget | undefined {
  const path = /^sqlite:(.+)$/.exec(text)?.[1]
  // Two connections share the file (see sqlite/driver.ts), which a database in memory does not allow.
  if (path !== undefined) return path === ':memory:' ? undefined : { dialect: 'sqlite', path }
  if (!/^postgres(ql)?:\/\//.test(text) || !URL.canParse(text)) return undefined
  return { dialect: 'postgres', url: text, shownAs: withoutPassword(new URL(text)) }
}

function withoutPassword(url: URL): string {
  return `${url.protocol}//${url.host}${url.pathname}`
}
