import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'

export type DatabaseTarget =
  | { readonly dialect: 'sqlite'; readonly path: string }
  | { readonly dialect: 'postgres'; readonly url: string; readonly shownAs: string }

/** Parses `database-url` (STORE-1). Undefined if it is neither `sqlite:<path>` nor `postgres://…`. */
export function parseDatabaseUrl(text: string): DatabaseTarget | undefined {
  const path = /^sqlite:(.+)$/.exec(text)?.[1]
  // Two connections share the file (see sqlite/driver.ts), which an in-memory database does not allow.
  if (path !== undefined) return path === ':memory:' ? undefined : { dialect: 'sqlite', path }
  if (!/^postgres(ql)?:\/\//.test(text) || !URL.canParse(text)) return undefined
  return { dialect: 'postgres', url: text, shownAs: withoutPassword(new URL(text)) }
}

function withoutPassword(url: URL): string {
  return `${url.protocol}//${url.host}${url.pathname}`
}

/**
 * Creates a folder and its parents for this user only, level by level: `recursive` never returns where the system
 * refuses a folder with ENOENT (`/proc`, some network mounts).
 */
export function makeFolder(folder: string): void {
  try {
    mkdirSync(folder, { mode: 0o700 })
  } catch (error) {
    if (isErrno(error, 'EEXIST')) return
    if (!isErrno(error, 'ENOENT') || dirname(folder) === folder) throw error
    makeFolder(dirname(folder))
    mkdirSync(folder, { mode: 0o700 })
  }
}

function isErrno(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code
}
