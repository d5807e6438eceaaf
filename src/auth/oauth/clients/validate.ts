import { Failing, isPlainLine, ON_PLAIN_LINE, type StoredFacts } from '../../../core/index.ts'
import { isResourceType } from '../../../fhir/index.ts'
import {
  findScopeListFault,
  PORTAL_CLIENT,
  parseScope,
  suggestScope,
  suggestType,
} from '../../../smart/index.ts'
import { type Fault, makeFault } from '../../base/fault.ts'
import { LIMITS } from '../../base/limits.ts'
import type { FaultReason } from '../../words/faults.ts'
import { isProgramScope } from '../../words/program-scopes.ts'
import type { Client } from './client.ts'
import { hasPrivateKey, serializeKeySet } from './key-sets.ts'
import {
  findJwksUrlFault,
  findLaunchUrlFault,
  findLogoUrlFault,
  findRedirectUriFault,
  findWebPageFault,
} from './urls.ts'

/** The properties of an app that its registration states. */
export type ClientProperties = Omit<
  Client,
  | 'id'
  | 'name'
  | 'secretHash'
  | 'createdAt'
  | 'expiresAt'
  | 'enabledAt'
  | 'mark'
  | 'isForLoopback'
  | 'isDescribed'
> & {
  /** Undefined: the client id. */
  readonly name: string | undefined
}

/** The properties that a registration may omit. */
export const CLIENT_DEFAULTS = {
  name: undefined,
  description: undefined,
  logoUrl: undefined,
  websiteUrl: undefined,
  policyUrl: undefined,
  termsUrl: undefined,
  contacts: [],
  jwks: undefined,
  jwksUrl: undefined,
  redirectUris: [],
  postLogoutRedirectUris: [],
  launchUrl: undefined,
  firstParty: false,
  approved: true,
  pkceRequired: true,
  issParameter: true,
} as const satisfies Partial<ClientProperties>

/** The reason why an app cannot be registered or changed. */
export class ClientFault extends Failing implements Fault {
  readonly reason: FaultReason
  readonly facts: StoredFacts
  readonly text: string
  readonly property: 'id' | keyof ClientProperties
  /** The invalid value, if there are several. */
  readonly value: string | undefined
  /** The faults that were found with this one. */
  readonly others: readonly ClientFault[]
  constructor(
    property: ClientFault['property'],
    { reason, facts, text }: Fault,
    value?: string,
    others: readonly ClientFault[] = [],
  ) {
    super()
    this.reason = reason
    this.facts = facts
    this.text = text
    this.property = property
    this.others = others
    // A URL that contains a password is not repeated.
    this.value = value === undefined || value.includes('@') || value.length > SHOWN ? undefined : value
  }
}

const SHOWN = 200

/** The methods of authentication in RFC 7591, 2. */
export const AUTH_METHODS = {
  none: 'none',
  client_secret_basic: 'client_secret',
  client_secret_post: 'client_secret',
  private_key_jwt: 'private_key_jwt',
} as const satisfies Readonly<Record<string, ClientProperties['authMethod']>>

export type AuthMethod = keyof typeof AUTH_METHODS

export const ID_TAKEN = new ClientFault('id', makeFault('client-id-in-use'))

/** Removes duplicates and surplus spaces. */
export function normalizeScope(text: string): string {
  return [...new Set(text.split(/\s+/).filter(part => part !== ''))].join(' ')
}

export function findClientIdFault(id: string): ClientFault | undefined {
  if (!/^[\x21-\x7e]{1,200}$/.test(id)) return new ClientFault('id', makeFault('client-id-malformed'))
  return id === PORTAL_CLIENT ? new ClientFault('id', makeFault('client-id-reserved'), id) : undefined
}

/** Who registers an app. Only an administrator registers a program that uses this server itself. */
export interface Registrar {
  readonly isByAdministrator?: boolean
  /** Whether the app ends with a public URL (ENDS-2). */
  readonly isForLoopback?: boolean
  /** The account of the person who registers it. */
  readonly accountId?: string | undefined
}

/** Faults that are named at once. */
export const NAMED_FAULTS = 20

/**
 * Finds the faults of an app, as the first one with the others: the same rules on the command line, in the browser and for
 * registrations by apps.
 */
export function findClientFault(app: ClientProperties, registrar: Registrar = {}): ClientFault | undefined {
  const [first, ...others] = listClientFaults(app, registrar)
  return first && new ClientFault(first.property, first, first.value, others.slice(0, NAMED_FAULTS - 1))
}

/** A fault and those that were found with it, in other words, each once. */
export function describeClientFaults(
  fault: ClientFault,
  describe: (one: ClientFault) => Fault,
): readonly Fault[] {
  const faults = [fault, ...fault.others].map(describe)
  return [...new Map(faults.map(one => [one.text, one])).values()]
}

/** A fault, after the value that is meant. */
export function nameValue(fault: ClientFault): Fault {
  const { value } = fault
  return value === undefined ? fault : makeFault('value-invalid', { value, fault })
}

/** Lists the faults of an app: of each value that is invalid. */
export function listClientFaults(
  app: ClientProperties,
  { isByAdministrator = false }: Registrar = {},
): readonly ClientFault[] {
  const isProgram = isByAdministrator && isProgramScope(app.scope)
  return [
    findTextFault('name', app.name, LIMITS.nameCharacters),
    findTextFault('description', app.description, LIMITS.descriptionCharacters),
    ...listUrlFaults('logoUrl', findLogoUrlFault, app.logoUrl),
    ...listUrlFaults('websiteUrl', findWebPageFault, app.websiteUrl),
    ...listUrlFaults('policyUrl', findWebPageFault, app.policyUrl),
    ...listUrlFaults('termsUrl', findWebPageFault, app.termsUrl),
    findContactsFault(app.contacts),
    ...listUrlFaults('launchUrl', findLaunchUrlFault, app.launchUrl),
    ...listUrlFaults('redirectUris', findRedirectUriFault, ...app.redirectUris),
    ...listUrlFaults('postLogoutRedirectUris', findRedirectUriFault, ...app.postLogoutRedirectUris),
    ...listUrlFaults('jwksUrl', findJwksUrlFault, app.jwksUrl),
    ...(isProgram ? [findProgramFault(app)] : listScopeFaults(app.scope)),
    findConflict(app, isProgram),
  ].filter(fault => fault !== undefined)
}

/** A program that uses this server itself is not an app (ADMIN-1). */
function findProgramFault({ authMethod, redirectUris, launchUrl, scope }: ClientProperties) {
  if (authMethod === 'none')
    return new ClientFault('authMethod', makeFault('program-without-credentials', { scope }))
  if (redirectUris.length > 0)
    return new ClientFault('redirectUris', makeFault('program-with-redirect-uri', { scope }))
  if (launchUrl !== undefined)
    return new ClientFault('launchUrl', makeFault('program-with-launch-url', { scope }))
  return undefined
}

function findTextFault(
  property: 'name' | 'description' | 'contacts',
  text: string | undefined,
  longest: number,
): ClientFault | undefined {
  return text === undefined || isPlainLine(text, longest)
    ? undefined
    : new ClientFault(property, makeFault('line-malformed', { longest, form: ON_PLAIN_LINE }))
}

function findContactsFault(contacts: readonly string[]): ClientFault | undefined {
  if (contacts.length > LIMITS.contacts)
    return new ClientFault('contacts', makeFault('contacts-too-many', { most: LIMITS.contacts }))
  return contacts
    .map(contact => findTextFault('contacts', contact, LIMITS.nameCharacters))
    .find(fault => fault !== undefined)
}

function listUrlFaults(
  property: Exclude<ClientFault['property'], 'id' | 'name' | 'description' | 'contacts'>,
  findFault: (url: string) => Fault | undefined,
  ...urls: readonly (string | undefined)[]
): readonly ClientFault[] {
  if (urls.length > LIMITS.urls)
    return [new ClientFault(property, makeFault('urls-too-many', { most: LIMITS.urls }))]
  return urls.flatMap(url => {
    if (url === undefined) return []
    const isLong = url.length > LIMITS.urlCharacters
    const fault = isLong ? makeFault('url-too-long', { longest: LIMITS.urlCharacters }) : findFault(url)
    return fault ? new ClientFault(property, fault, url) : []
  })
}

function listScopeFaults(list: string): readonly ClientFault[] {
  if (list.trim() === '') return [new ClientFault('scope', makeFault('scopes-missing'))]
  const exceeded = findScopeListFault(list)
  if (exceeded) return [new ClientFault('scope', makeFault(exceeded.reason, { most: exceeded.most }))]
  return list.split(' ').flatMap(text => {
    const fault = findScopeFault(text)
    return fault ? new ClientFault('scope', fault, text) : []
  })
}

function findScopeFault(text: string): Fault | undefined {
  const scope = parseScope(text)
  if (scope === undefined) {
    const meant = suggestScope(text)
    return meant === undefined ? makeFault('scope-malformed') : makeFault('scope-misspelled', { meant })
  }
  if (scope.kind !== 'resource' || scope.type === '*' || isResourceType(scope.type)) return undefined
  const { type } = scope
  const meant = suggestType(type)
  return meant === undefined
    ? makeFault('scope-type-unknown', { type })
    : makeFault('scope-type-misspelled', { type, meant })
}

function findConflict(
  { authMethod, jwks, jwksUrl, scope, redirectUris }: ClientProperties,
  isAdministrator: boolean,
) {
  if (jwks !== undefined && jwksUrl !== undefined) return new ClientFault('jwks', makeFault('keys-twice'))
  if (authMethod === 'private_key_jwt' && jwks === undefined && jwksUrl === undefined)
    return new ClientFault('jwksUrl', makeFault('keys-missing'))
  if (redirectUris.length === 0 && !isAdministrator && !isForSystemsOnly(scope))
    return new ClientFault('redirectUris', makeFault('redirect-uri-missing'))
  // SMART backend services: only clients that sign may use system scopes.
  if (authMethod !== 'private_key_jwt' && /(^| )(system\/|__launch-contexts\.c)/.test(scope))
    return new ClientFault('scope', makeFault('scope-needs-keys'))
  return undefined
}

/** Whether no user authorizes the app: only `system/` scopes and the launch API. */
export function isForSystemsOnly(scope: string): boolean {
  return scope.split(' ').every(part => part.startsWith('system/') || part === '__launch-contexts.c')
}

/** Whether the list has a scope of this server itself, which only an administrator may register. */
export function hasOwnScope(scope: string): boolean {
  return scope.split(' ').some(part => part.startsWith('__'))
}

/** Serializes the JWK Set of an app. */
export function readRegisteredKeys(document: unknown): string | ClientFault {
  if (hasPrivateKey(document)) return new ClientFault('jwks', makeFault('keys-private'))
  return (
    serializeKeySet(document) ??
    new ClientFault(
      'jwks',
      makeFault('keys-malformed', { most: LIMITS.keys, longest: LIMITS.keySetCharacters }),
    )
  )
}
