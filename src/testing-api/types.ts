import type { Simulation } from './simulations.ts'

export interface StartOptions {
  /** Settings by their variables, as docs/settings.md lists them: `{ SMART_SAMPLE_PATIENTS: '2' }`. Those of the environment do not apply. */
  readonly settings?: Readonly<Record<string, string>>
  /** Files and folders with FHIR resources, in addition to the sample patients. */
  readonly import?: readonly string[]
  /** By default all three. */
  readonly servers?: readonly ('auth' | 'fhir' | 'app')[]
}

/** Somebody who can sign in. */
export interface User {
  readonly username: string
  readonly password: string
}

export interface Users {
  readonly clinician?: User
  readonly admin?: User
  readonly patient?: User
  readonly mother?: User
}

/** An app to register, as `sallyport client add` does: public, unless it has a secret or keys. */
export interface App {
  readonly id: string
  /** The scopes that it may request, separated by spaces. */
  readonly scope: string
  /** Not needed if all scopes are `system/` scopes. */
  readonly redirectUris?: readonly string[]
  readonly launchUrl?: string
  /** Shown to users. By default the id. */
  readonly name?: string
  /** Confidential: with a generated secret, which `addApp` returns. */
  readonly secret?: boolean
  /** Confidential: with these public keys (`private_key_jwt`). */
  readonly jwks?: { readonly keys: readonly object[] }
  /** Confidential: with the public keys at this URL. */
  readonly jwksUrl?: string
  /** Its users are not asked for consent. */
  readonly firstParty?: boolean
}

export interface RegisteredApp {
  readonly id: string
  readonly secret?: string
}

export interface TokenOptions {
  /** Its id. By default the first one that was added. */
  readonly app?: string
  /** The scopes to grant, separated by spaces. By default all of the app. */
  readonly scope?: string
  readonly patient?: string
  readonly encounter?: string
  /** A username. By default `clinician`. */
  readonly user?: string
}

export interface LaunchOptions extends TokenOptions {
  /** Whether the user signs in. */
  readonly signIn?: boolean
  /** Whether the user is asked for consent. */
  readonly consent?: boolean
  /** An error to simulate. */
  readonly simulate?: Simulation
  /** Where the app is launched, if it is not registered for a launch URL, or not registered at all. */
  readonly launchUrl?: string
}

export interface ProblemOptions {
  /** Only those of this app, by its id. */
  readonly app?: string
  /** Only later ones: a date, or `90s`, `15m`, `2h`. */
  readonly since?: Date | string
}

export interface Comparison {
  /** A parameter, for example `redirect_uri`. */
  readonly name: string
  readonly sent?: string
  readonly expected: readonly string[]
  /** Where the expected values come from: `registered`, `required`, … */
  readonly origin: string
}

/** A request that was refused, failed, or did not give the app what it asked for: `sallyport problems`. */
export interface Problem {
  readonly at: string
  /** `fhir`, `authorize`, `token`, … */
  readonly kind: string
  readonly status: number
  readonly app?: string
  readonly launch?: string
  /** Of a FHIR request: `GET Observation?patient=patient-1`. */
  readonly request?: string
  readonly cause: string
  /** The text of the server, if the cause is another one. */
  readonly reason?: string
  /** What to change. */
  readonly action?: string
  /** The scopes of the token, if they decided. */
  readonly scope?: string
  /** What was sent, beside what it was compared with. */
  readonly compared?: readonly Comparison[]
}

/** Servers that run, whoever started them. */
export interface Connection {
  readonly authUrl: string
  readonly fhirUrl: string
  readonly appUrl: string
  /** A port that was free at the start, for the app under test. */
  readonly freePort: number
  /** Who can sign in with a password. The patient and the mother of another one exist with the 30 sample patients. */
  readonly users: Users
  /** For other processes, which connect by it: the URLs, the users, the first app that was added, and the settings. */
  readonly env: Readonly<Record<string, string>>
  addApp(app: App): Promise<RegisteredApp>
  /** An access token, without a launch. It fails if a requested scope cannot be granted. */
  token(options?: TokenOptions): Promise<string>
  /**
   * A link that launches the app, each time it is opened. Without sign-in and consent, unless they are asked for. It fails if the app, the
   * user, the patient or the encounter does not exist.
   */
  launch(options?: LaunchOptions): Promise<string>
  /** What was refused since the start, and why. */
  problems(options?: ProblemOptions): Promise<readonly Problem[]>
  /** Runs another command of `sallyport` on the same data. Its standard output. */
  run(...args: readonly string[]): Promise<string>
}

/** Servers that this process has started. */
export interface Sallyport extends Connection, AsyncDisposable {
  stop(): Promise<void>
}
