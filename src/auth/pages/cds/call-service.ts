import { randomUUID } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import type { CdsService } from '../../../config/index.ts'
import { describeError, isFailure, isRecord } from '../../../core/index.ts'
import { findJsonExcess } from '../../../fhir/index.ts'
import { auditEvent } from '../../base/audit.ts'
import { readLimited } from '../../base/fetch-document.ts'
import { LIFETIME, LIMITS } from '../../base/limits.ts'
import { paths } from '../../base/paths.ts'
import type { AuthRefusal } from '../../base/refusal.ts'
import { formatFhirUser } from '../../base/user.ts'
import { makeScopeTerms } from '../../oauth/authorize/authorized-context.ts'
import { type Client, findClient } from '../../oauth/clients/client.ts'
import type { AuthContext } from '../../oauth/context.ts'
import { createGrant, findLiveGrant, revokeGrant } from '../../oauth/grants/grant.ts'
import { checkGrantedScope, grantScope } from '../../oauth/grants/grant-scope.ts'
import { signOwnJwt } from '../../oauth/keys/key-ring.ts'
import { buildTokens, signTokens } from '../../oauth/token/token-response.ts'
import type { Login } from '../../users/find-login.ts'

export interface HookSubject {
  readonly patientId: string
  readonly encounterId: string | undefined
}

/** The cards of a service; undefined if it is unavailable. */
export interface ServiceCards {
  readonly service: CdsService
  readonly cards: readonly Card[] | undefined
}

interface Caller {
  readonly request: FastifyRequest
  readonly login: Login
}

/** Calls the services with the hook `patient-view`, all at once. A service that fails does not affect the others. */
export function callServices(
  context: AuthContext,
  caller: Caller,
  subject: HookSubject,
): Promise<readonly ServiceCards[]> {
  const calls = context.settings.cds.services.map(async service => {
    try {
      return { service, cards: await callService(context, caller, subject, service) }
    } catch (error) {
      caller.request.log.warn(
        { service: service.id, reason: describeError(error) },
        'CDS service unavailable',
      )
      return { service, cards: undefined }
    }
  })
  return Promise.all(calls)
}

/** The access of the service ends with its response (CDS Hooks 2.0, passing the access token to the CDS service). */
async function callService(
  context: AuthContext,
  caller: Caller,
  subject: HookSubject,
  service: CdsService,
): Promise<readonly Card[]> {
  const { grantId, fhirAuthorization } = await grantAccess(context, caller, subject, service)
  try {
    const cards = readCards(
      await sendHook(context, service, {
        hook: 'patient-view',
        hookInstance: randomUUID(),
        fhirServer: context.settings.fhirBaseUrl,
        fhirAuthorization,
        context: {
          userId: formatFhirUser(caller.login.user.fhirUserId),
          patientId: subject.patientId,
          ...(subject.encounterId !== undefined && { encounterId: subject.encounterId }),
        },
      }),
    )
    if (!cards) throw new Error('the response has no cards')
    return cards
  } finally {
    await revokeGrant(context.store.db, grantId, context.clock())
  }
}

/** Issues a token for the `patient/` scopes of the service's client, the patient and the clinician. */
async function grantAccess(
  context: AuthContext,
  { request, login }: Caller,
  { patientId, encounterId }: HookSubject,
  service: CdsService,
) {
  const client = await findClient(context.store.db, context, service.clientId)
  if (!client) throw new Error(`there is no client ${service.clientId}`)
  const scope = chooseScope(context, client, encounterId !== undefined)
  if (isFailure(scope)) throw new Error(`the client ${service.clientId} has no patient/ scopes`)
  const grant = await context.store.db.transaction().execute(async trx => {
    const id = await createGrant(trx, context, {
      client,
      loginIdHash: login.idHash,
      scope,
      launchId: undefined,
      patientId,
      encounterId,
      needPatientBanner: undefined,
      fromEhr: false,
      isForHook: true,
      extraContext: {},
      authTime: login.authTime,
      acr: login.acr,
      amr: login.amr,
      fhirUserId: undefined,
    })
    const created = id === undefined ? undefined : await findLiveGrant(trx, context, id)
    if (!created) throw new Error('the login has ended')
    const event = { kind: 'token', status: 200, client: client.id, patient: patientId, by: scope } as const
    const reason = `For the CDS service ${service.id}: patient-view`
    await auditEvent(context, request, { ...event, launch: id, reason, user: login.user }, trx)
    return created
  })
  const accessTokenTtlSeconds = Math.min(context.settings.accessTokenTtlSeconds, LIFETIME.cdsToken / 1000)
  const settings = { ...context.settings, accessTokenTtlSeconds }
  const tokens = buildTokens(
    { settings, clock: context.clock },
    { grant, scope, refreshToken: undefined, nonce: undefined },
  )
  const { access_token, token_type, expires_in } = await signTokens(
    await context.keys.getSigningKey(),
    tokens,
  )
  const fhirAuthorization = {
    access_token,
    token_type,
    expires_in,
    scope,
    subject: client.id,
    patient: patientId,
  }
  return { grantId: grant.id, fhirAuthorization }
}

/** Only `patient/` scopes: the hook is about one patient. */
function chooseScope({ settings }: AuthContext, client: Client, hasEncounter: boolean): string | AuthRefusal {
  const available = { launched: true, hasPatient: true, hasEncounter }
  const granted = grantScope(client.scope, makeScopeTerms(settings, { client }, available))
  const scope = granted
    .split(' ')
    .filter(part => part.startsWith('patient/'))
    .join(' ')
  return checkGrantedScope(scope) ?? scope
}

async function sendHook(context: AuthContext, service: CdsService, hook: object): Promise<unknown> {
  const url = `${service.url}/cds-services/${service.id}`
  const response = await context.fetch(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json',
      authorization: `Bearer ${await signClientJwt(context, url)}`,
    },
    body: JSON.stringify(hook),
    // The token is for this service only.
    redirect: 'error',
    signal: AbortSignal.timeout(LIMITS.cdsMs),
  })
  if (response.status !== 200) throw new Error(`the response status is ${response.status}`)
  const text = await readLimited(response.body)
  if (findJsonExcess(text)) throw new Error('the response is nested too deeply or has too many values')
  return JSON.parse(text)
}

/** CDS Hooks 2.0, trusting CDS clients: the service verifies it with the key set at `jku`. */
async function signClientJwt({ settings, keys, clock }: AuthContext, aud: string): Promise<string> {
  const iat = Math.floor(clock() / 1000)
  const claims = { iss: settings.issuerUrl, aud, iat, exp: iat + LIFETIME.cdsToken / 1000, jti: randomUUID() }
  return signOwnJwt(await keys.getSigningKey(), 'JWT', claims, { jku: `${settings.issuerUrl}${paths.jwks}` })
}

/** A card of a CDS service (CDS Hooks 2.0, card attributes), without suggestions. */
export interface Card {
  readonly summary: string
  /** Markdown. */
  readonly detail: string | undefined
  readonly indicator: Indicator
  readonly source: { readonly label: string; readonly url: string | undefined }
  readonly links: readonly CardLink[]
}

export interface CardLink {
  readonly label: string
  readonly url: string
  readonly type: 'absolute' | 'smart'
  readonly appContext: string | undefined
}

const INDICATORS = ['critical', 'warning', 'info'] as const

export type Indicator = (typeof INDICATORS)[number]

/** The most urgent first. */
export function compareUrgency(a: Card, b: Card): number {
  return INDICATORS.indexOf(a.indicator) - INDICATORS.indexOf(b.indicator)
}

/** Reads the most urgent cards of a response. Undefined if it is not a response of a CDS service. */
function readCards(response: unknown): readonly Card[] | undefined {
  if (!isRecord(response) || !Array.isArray(response.cards)) return undefined
  return response.cards
    .flatMap(card => readCard(card) ?? [])
    .toSorted(compareUrgency)
    .slice(0, LIMITS.cdsCards)
}

/** A card without its required members, or with a value that is too long, is omitted: an incomplete card could mislead. */
function readCard(card: unknown): Card | undefined {
  if (!isRecord(card) || !isRecord(card.source)) return undefined
  const summary = readShortText(card.summary, LIMITS.cdsSummaryCharacters)
  const label = readShortText(card.source.label, LIMITS.cdsSummaryCharacters)
  const indicator = INDICATORS.find(known => known === card.indicator)
  const detail =
    card.detail === undefined ? undefined : readShortText(card.detail, LIMITS.cdsDetailCharacters)
  if (summary === undefined || label === undefined || indicator === undefined) return undefined
  if (card.detail !== undefined && detail === undefined) return undefined
  return {
    summary,
    detail,
    indicator,
    source: { label, url: readWebUrl(card.source.url) },
    links: readLinks(card.links),
  }
}

function readLinks(links: unknown): readonly CardLink[] {
  const all: readonly unknown[] = Array.isArray(links) ? links : []
  return all.slice(0, LIMITS.cdsLinks).flatMap(link => readLink(link) ?? [])
}

function readLink(link: unknown): CardLink | undefined {
  if (!isRecord(link)) return undefined
  const { type, appContext } = link
  const label = readShortText(link.label, LIMITS.cdsSummaryCharacters)
  const url = readWebUrl(link.url)
  if (label === undefined || url === undefined || (type !== 'absolute' && type !== 'smart')) return undefined
  if (type === 'absolute' || appContext === undefined) return { label, url, type, appContext: undefined }
  const context = readShortText(appContext, LIMITS.appContextCharacters)
  return context === undefined ? undefined : { label, url, type, appContext: context }
}

function readShortText(value: unknown, maxCharacters: number): string | undefined {
  return typeof value === 'string' &&
    value.trim() !== '' &&
    value.length <= maxCharacters &&
    !value.includes('\0')
    ? value
    : undefined
}

/** An absolute URL that a browser opens as a page. */
export function readWebUrl(value: unknown): string | undefined {
  if (typeof value !== 'string' || value.length > LIMITS.urlCharacters) return undefined
  const url = URL.parse(value)
  return url && /^https?:$/.test(url.protocol) && url.username === '' ? value : undefined
}
