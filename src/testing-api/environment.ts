export type Env = Readonly<Record<string, string | undefined>>

/** What a process needs to use the servers, beside their settings. `start --run` sets all but the last, which `addApp` sets. */
const NAMES = ['AUTH_URL', 'FHIR_URL', 'APP_URL', 'FREE_PORT', 'TEST_USERS', 'TEST_APP']

/** The part of an environment that describes running servers. */
export function pickServers(env: Env): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(env).flatMap(([name, value]) =>
      value !== undefined && (NAMES.includes(name) || isSetting(name)) ? [[name, value]] : [],
    ),
  )
}

/** The environment of a program that gets its settings from us alone. */
export function withoutSettings(env: Env): Env {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !isSetting(name)))
}

function isSetting(name: string): boolean {
  return name.startsWith('SMART_')
}
