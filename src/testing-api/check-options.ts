import { findNearest } from '../core/index.ts'
import { SIMULATIONS } from './simulations.ts'
import type { App, LaunchOptions, ProblemOptions, StartOptions, TokenOptions } from './types.ts'

const TOKEN = { app: true, scope: true, patient: true, encounter: true, user: true } satisfies Record<
  keyof TokenOptions,
  true
>

/** The options of each function, by its name. */
const OPTIONS = {
  startSallyport: { settings: true, import: true, servers: true } satisfies Record<keyof StartOptions, true>,
  addApp: {
    id: true,
    scope: true,
    redirectUris: true,
    launchUrl: true,
    name: true,
    secret: true,
    jwks: true,
    jwksUrl: true,
    firstParty: true,
  } satisfies Record<keyof App, true>,
  token: TOKEN,
  launch: { ...TOKEN, signIn: true, consent: true, simulate: true, launchUrl: true } satisfies Record<
    keyof LaunchOptions,
    true
  >,
  problems: { app: true, since: true } satisfies Record<keyof ProblemOptions, true>,
}

/** Throws for options that the compiler refuses: tests in JavaScript have none, and a misspelt one would change nothing. */
export function checkOptions(
  method: keyof typeof OPTIONS,
  options: object,
  required: readonly string[] = [],
): void {
  for (const name of Object.keys(options))
    if (!Object.hasOwn(OPTIONS[method], name))
      throw new TypeError(
        `${method}: unknown option ${name}${suggest(findNearest(name, Object.keys(OPTIONS[method])))}`,
      )
  const given = new Map(Object.entries(options))
  const missing = required.find(name => given.get(name) === undefined)
  if (missing !== undefined) throw new TypeError(`${method}: expected ${missing}`)
}

export function checkSimulation(name: string | undefined): void {
  const names: readonly string[] = SIMULATIONS
  if (name === undefined || names.includes(name)) return
  const meant = findNearest(name, names) ?? names.find(one => one.endsWith(`:${name}`))
  throw new TypeError(
    `launch: cannot simulate ${name}${suggest(meant) || `: expected one of ${names.join(', ')}`}`,
  )
}

const SERVERS: readonly string[] = ['auth', 'fhir', 'app']

export function checkServers(names: readonly string[]): void {
  for (const name of names)
    if (!SERVERS.includes(name))
      throw new TypeError(
        `startSallyport: unknown server ${name}${suggest(findNearest(name, SERVERS)) || `: expected ${SERVERS.join(', ')}`}`,
      )
}

function suggest(meant: string | undefined): string {
  return meant === undefined ? '' : `: did you mean ${meant}?`
}
