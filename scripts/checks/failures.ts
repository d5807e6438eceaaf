import type { Sources } from './modules.ts'

/**
 * An expected failure is a returned value with the brand of `src/core/failure.ts`. This finds the other ways to fail by
 * the names that they have in code.
 */
export function findFailureFaults(sources: Sources): readonly string[] {
  return [...sources]
    .filter(([file]) => file.startsWith('src/') && !file.endsWith('.test.ts') && !file.includes('/testing/'))
    .flatMap(([file, text]) =>
      RULES.flatMap(({ find, advice }) =>
        find(text)
          .filter(found => !(SHOWN_AS_JSON[file] ?? []).includes(found))
          .map(found => `${file}: ${found}: ${advice}`),
      ),
    )
}

interface Rule {
  /** The faults of a file, as they are written in it. */
  readonly find: (text: string) => readonly string[]
  readonly advice: string
}

/** Errors that end whatever is under way, at any depth, and the reason for each. Nobody handles them on the way. */
const INFRASTRUCTURE: ReadonlyMap<string, string> = new Map([
  ['AuditUnavailable', 'an audit record cannot be written'],
  ['DatabaseUnavailable', 'the database does not answer'],
  ['ThreadPoolFull', 'the process has too much work'],
  ['NotReady', 'a server cannot serve yet'],
  ['CommandFailure', 'ends a command with a message and an exit code'],
  ['SettingsError', 'ends the start with all problems of the settings'],
])

/** Names of discriminated requests and of values from outside, whose members are unknown. */
const TESTED_WITH_IN: ReadonlySet<string> = new Set([
  'body',
  'cause',
  'claims',
  'clause',
  'document',
  'error',
  'event',
  'fact',
  'handle',
  'interaction',
  'manifest',
  'message',
  'operation',
  'part',
  'resource',
  'scheme',
  'socket',
  'subject',
  'target',
])

/** Reports that an endpoint shows, member for member. */
const SHOWN_AS_JSON: Readonly<Record<string, readonly string[]>> = {
  // Of `/readyz`.
  'src/web/http/health.ts': ['ok: boolean', 'ok: true', 'ok: false', 'result.ok', 'before?.ok'],
  'src/cli/workers/supervisor.ts': ['ok: false'],
  'src/auth/admin/server/system.ts': ['value.ok'],
  // Of the validation of a policy file.
  'src/auth/admin/server/policy.ts': ['valid: true', 'valid: false'],
}

const RULES: readonly Rule[] = [
  {
    find: text => [
      ...findAll(text, /\b(?:ok|valid|success)\??: (?:true|false|boolean)\b/g),
      ...findAll(text, /\b(\w+)\??\.(?:ok|success)\b/g).filter(
        found => !/^(?:\w+R|r)esponse\??\./.test(found),
      ),
    ],
    advice: 'return a value, or a failure with a brand',
  },
  {
    find: text =>
      [...text.matchAll(/'\w+' in ([\w.]+)/g)].flatMap(([found, of = '']) =>
        TESTED_WITH_IN.has(of.split('.').at(-1) ?? '') ? [] : [found],
      ),
    advice: 'tell a failure by isFailure',
  },
  {
    find: text =>
      [...text.matchAll(/\bclass (\w+) extends \w*Error\b/g)].flatMap(([found, name = '']) =>
        INFRASTRUCTURE.has(name) ? [] : [found],
      ),
    advice: 'return an expected failure, and throw for bugs',
  },
  {
    find: text =>
      findAll(
        text,
        /\bthrow (?:(?:fail|failAdmin|refuse)\(|new \w*(?:AdminFailure|Fault|Refusal)\b|[A-Z][A-Z_]+\b)/g,
      ),
    advice: 'return an expected failure',
  },
  {
    find: text => findAll(text, /^\s*await recordAction\(/gm),
    advice: 'the operation is refused by what recordAction returns',
  },
  {
    find: text => findAll(text, /\bconst \[?(?:MOST|LONGEST|LARGEST|SHORTEST|SMALLEST)_\w+/g),
    advice: 'begin the name with MAX_ or MIN_',
  },
  {
    find: text => findAll(text, /^\s*(?:const|let) \[\w+(?:, \w+)+\] = \[(?=[^\n]*\]$|$)/gm),
    advice: 'write a declaration for each',
  },
]

function findAll(text: string, pattern: RegExp): readonly string[] {
  return [...text.matchAll(pattern)].map(([found]) => found)
}
