/** Tokens and launches for the command line, without a login. Call it only if the lab is on (SETTING-9). */

import { randomUUID } from 'node:crypto'
import type { AuditRecord } from '../../audit/index.ts'
import { isFailure } from '../../core/index.ts'
import { parseScopes } from '../../smart/index.ts'
import { sha256 } from '../../store/index.ts'
import type { EventDetails } from '../base/audit.ts'
import { type AuthRefusal, refuse } from '../base/refusal.ts'
import { type AuthUser, findOwnPatient, formatFhirUser, isPatientUser } from '../base/user.ts'
import { makeScopeTerms } from '../oauth/authorize/authorized-context.ts'
import { type Client, findClient } from '../oauth/clients/client.ts'
import { isForSystemsOnly } from '../oauth/clients/validate.ts'
import type { AuthContext } from '../oauth/context.ts'
import { areAgentsOff } from '../oauth/grants/agents-switch.ts'
import { createGrant, findLiveGrant, type UserGrant } from '../oauth/grants/grant.ts'
import { checkGrantedScope, checkRequestedScope, grantScope } from '../oauth/grants/grant-scope.ts'
import { createKeyRing } from '../oauth/keys/key-ring.ts'
import { createLaunchToken, type Launch } from '../oauth/launch/launch-token.ts'
import { buildLaunchUrl } from '../oauth/launch/prepare.ts'
import { buildTokens, signTokens, type TokenResponse } from '../oauth/token/token-response.ts'
import { findLaunchUser } from '../users/accounts.ts'
import { beginLogin } from '../users/login.ts'
import { describeSimulation, type LabSettings, type LabSimulation } from './settings.ts'

export type CommandContext = Pick<
  AuthContext,
  'settings' | 'store' | 'sealer' | 'audit' | 'clock' | 'rules'
> & { readonly operator: string }

export interface CommandRequest {
  readonly clientId: string
  readonly username: string
  readonly patientId: string | undefined
  readonly encounterId: string | undefined
}

export { isSimulation, SIMULATIONS, suggestSimulation } from './settings.ts'

interface Parties {
  readonly client: Client
  readonly user: AuthUser
  readonly patientId: string | undefined
}

interface TokenTerms {
  readonly scope: string | undefined
  /** The endpoint of assistants, if the token is for that. */
  readonly resource?: string | undefined
}

/** Issues an access token, as if the user had allowed the app everything that it requests. It cannot be refreshed. */
export async function issueTokenByCommand(
  context: CommandContext,
  request: CommandRequest & TokenTerms,
): Promise<TokenResponse | AuthRefusal> {
  const { encounterId, resource } = request
  if (resource !== undefined && (await areAgentsOff(context.store.db))) return refuse('agents-off')
  const parties = await findParties(context, request)
  if (isFailure(parties)) return parties
  const scope = chooseScope(context, parties, request)
  if (isFailure(scope)) return scope
  const grant = await storeGrant(context, parties, { encounterId, resource, scope })
  const key = await createKeyRing({ ...context, publishedForMs: 0 }).getSigningKey()
  const tokens = buildTokens(context, { grant, scope, refreshToken: undefined, nonce: undefined })
  return signTokens(key, tokens)
}

/** Creates a launch token and returns the URL that starts the launch, once. The user still logs in. */
export async function issueLaunchByCommand(
  context: CommandContext,
  request: CommandRequest & { readonly simulate: LabSimulation | undefined },
): Promise<string | AuthRefusal> {
  const { settings, store, clock } = context
  const { simulate } = request
  const parties = await findParties(context, request)
  if (isFailure(parties)) return parties
  const { client, user, patientId } = parties
  const { launchUrl } = client
  if (launchUrl === undefined) return refuse('app-without-launch-url', { client: client.id })
  if (patientId === undefined) return refuse('launch-needs-patient')
  const launch: Launch = {
    patientId,
    encounterId: request.encounterId,
    extraContext: {},
    id: randomUUID(),
    clientId: client.id,
    username: user.username,
    fhirBaseUrl: settings.fhirBaseUrl,
    needPatientBanner: settings.defaultNeedPatientBanner,
    ...(simulate !== undefined && { extension: JSON.stringify({ simulate } satisfies LabSettings) }),
  }
  return store.db.transaction().execute(async trx => {
    const token = await createLaunchToken(trx, launch, clock())
    const reason = simulate && `${ISSUED_BY_COMMAND}; ${describeSimulation(simulate)}`
    await context.audit.recordIn(
      trx,
      makeRecord(context, 'launch', parties, { launch: launch.id, reason, simulate }),
    )
    return buildLaunchUrl(launchUrl, settings.fhirBaseUrl, token)
  })
}

async function findParties(context: CommandContext, request: CommandRequest): Promise<Parties | AuthRefusal> {
  const client = await findClient(context.store.db, context, request.clientId)
  if (!client) return refuse('command-app-unknown', { client: request.clientId })
  const user = await findLaunchUser(context, request.username)
  const { username } = request
  if (!user) return refuse('command-user-unknown', { username })
  const own = findOwnPatient(user)
  // Only the FHIR server knows for whom a related person acts, and it need not run.
  if (own === undefined && isPatientUser(user)) return refuse('user-is-relative', { username })
  if (own !== undefined && request.patientId !== undefined && request.patientId !== own)
    return refuse('user-sees-another-patient', { username, patient: own })
  return { client, user, patientId: request.patientId ?? own }
}

function chooseScope(
  { settings }: CommandContext,
  { client, patientId }: Parties,
  request: TokenTerms & Pick<CommandRequest, 'encounterId'>,
): string | AuthRefusal {
  if (isForSystemsOnly(client.scope)) return refuse('app-is-backend-service', { client: client.id })
  const { resource, scope: requested = client.scope } = request
  const tooLarge = checkRequestedScope(requested)
  if (tooLarge) return tooLarge
  const hasEncounter = request.encounterId !== undefined
  const available = { launched: true, hasPatient: patientId !== undefined, hasEncounter }
  const granted = grantScope(requested, makeScopeTerms(settings, { client, resource }, available))
    .split(' ')
    .filter(scope => !FOR_REFRESH.has(scope))
    .join(' ')
  const lost = patientId === undefined ? findPatientScope(requested) : undefined
  if (lost !== undefined && !parseScopes(granted).some(({ kind }) => kind === 'resource'))
    return refuse('scope-needs-patient', { scope: lost })
  if (granted === '' && request.scope !== undefined)
    return refuse('command-scope-not-grantable', { client: client.id, registered: client.scope })
  return checkGrantedScope(granted) ?? granted
}

function findPatientScope(list: string): string | undefined {
  return parseScopes(list).find(scope => scope.kind === 'resource' && scope.context === 'patient')?.text
}

/** Whether a refusal is about a missing patient. */
export function lacksPatient({ reason }: AuthRefusal): boolean {
  return reason === 'launch-needs-patient' || reason === 'scope-needs-patient'
}

const FOR_REFRESH: ReadonlySet<string> = new Set(['online_access', 'offline_access'])

async function storeGrant(
  context: CommandContext,
  parties: Parties,
  {
    scope,
    encounterId,
    resource,
  }: TokenTerms & Pick<CommandRequest, 'encounterId'> & { readonly scope: string },
): Promise<UserGrant> {
  const { settings, store, clock } = context
  const { client, user, patientId } = parties
  const now = clock()
  return store.db.transaction().execute(async trx => {
    // A grant ends with a login. Nobody knows the id of this one, and it ends with the token.
    const byTools = { endsAt: now + settings.accessTokenTtlSeconds * 1000 }
    const loginIdHash = sha256(await beginLogin(context, trx, { userId: user.id, byTools }))
    const id = await createGrant(trx, context, {
      client,
      loginIdHash,
      scope,
      resource,
      patientId,
      encounterId,
      authTime: now,
      needPatientBanner: undefined,
      fromEhr: false,
      extraContext: {},
      launchId: undefined,
      acr: undefined,
      amr: undefined,
      fhirUserId: undefined,
    })
    await context.audit.recordIn(trx, makeRecord(context, 'token', parties, { launch: id, by: scope }))
    const found = id === undefined ? undefined : await findLiveGrant(trx, context, id)
    if (!found) throw new Error('Cannot find the grant that was just created')
    return found
  })
}

/** The reason in the audit records of these tokens and launches. */
const ISSUED_BY_COMMAND = 'Issued on the command line'

function makeRecord(
  { clock, operator }: CommandContext,
  kind: 'token' | 'launch',
  { client, user, patientId }: Parties,
  {
    reason = ISSUED_BY_COMMAND,
    simulate: mark,
    ...more
  }: Pick<AuditRecord, 'launch' | 'by' | 'reason'> & { readonly simulate?: LabSimulation | undefined },
): AuditRecord {
  return {
    at: clock(),
    server: 'auth',
    kind,
    allowed: true,
    status: 200,
    reason,
    address: operator,
    client: client.id,
    patient: patientId,
    subject: user.id,
    fhirUser: formatFhirUser(user.fhirUserId),
    details: { origin: 'command', mark } satisfies EventDetails,
    ...more,
  }
}
