import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { isFailure, isRecord } from '../../../core/index.ts'
import { isOpenedByOtherSite } from '../../../web/http/index.ts'
import { readPerson } from '../../../web/person/index.ts'
import { auditEvent } from '../../base/audit.ts'
import { createFhirReader, type FhirReader, listResources } from '../../base/fhir-reader.ts'
import { LIFETIME, LIMITS } from '../../base/limits.ts'
import { NO_HEAD_ROUTE, paths } from '../../base/paths.ts'
import { forbidCaching, readParameters } from '../../base/request.ts'
import type { AuthContext } from '../../oauth/context.ts'
import { issueLaunch, prepareLaunch } from '../../oauth/launch/prepare.ts'
import type { Login } from '../../users/find-login.ts'
import { requireClinician } from '../../users/login.ts'
import { sendLaunchProblem } from '../parts/launch-problem.ts'
import { buildPortalUrl } from '../parts/patient-list.ts'
import { type CardLink, callServices, type HookSubject, type ServiceCards } from './call-service.ts'
import { type BuildLaunchLink, renderCards, renderCardsPage } from './page.ts'

/** `GET /portal/cards` shows the cards of the CDS services for a patient, and `GET /portal/cards/launch` launches the app of a card. */
export function addCdsRoutes(app: FastifyInstance, context: AuthContext): void {
  const { settings } = context
  let running = 0

  app.get(
    paths.cards,
    { ...NO_HEAD_ROUTE, onRequest: forbidCaching },
    requireOwnPage(async (request, reply, login) => {
      const read = await createFhirReader(context, login.user, {
        purpose: 'decision-support',
        address: request.ip,
      })
      const id = readParameters(request.query).get('patient') ?? ''
      const patient = await read.resource('Patient', id)
      if (patient.kind === 'unavailable') return reply.sendProblem({ kind: 'unavailable' })
      if (patient.kind === 'absent' || settings.cds.services.length === 0)
        return reply.sendProblem({ kind: 'not-found' })
      const subject = { patientId: id, encounterId: await findOnlyEncounter(read, id) }
      const results = await callWithinLimit(request, login, subject)
      const cards = renderCards(id, results, await createLinkBuilder(context, login, subject, results))
      return reply.sendPage(renderCardsPage(context, login, readPerson(patient.resource), cards))
    }),
  )

  app.get(
    paths.cardsLaunch,
    { ...NO_HEAD_ROUTE, onRequest: forbidCaching },
    requireOwnPage(async (request, reply, login) => {
      const link = openLink(context, login, readParameters(request.query).get('link'))
      if (!link)
        return reply.sendProblem({
          kind: 'malformed',
          text: 'This link has expired. Pick the patient again.',
        })
      const { patientId, encounterId, clientId, appContext, service } = link
      const read = await createFhirReader(context, login.user, { purpose: 'launch', address: request.ip })
      const options = {
        needPatientBanner: undefined,
        extraContext: appContext === undefined ? {} : { appContext },
      }
      const result = await prepareLaunch(context, login.user, read, {
        patientId,
        encounterId,
        clientId,
        repeated: false,
        options,
      })
      if (isFailure(result)) return sendLaunchProblem(reply, context, login, result)
      const event = { kind: 'launch', status: 302, patient: patientId, client: clientId } as const
      const reason = `Launched by a card of the CDS service ${service}`
      const { url } = await issueLaunch(context, result, trx =>
        auditEvent(context, request, { ...event, launch: result.launch.id, reason, user: login.user }, trx),
      )
      return reply.redirect(url, 302)
    }, findPatientPage),
  )

  /** A link holds for one login: after another sign-in, the patient's page has new ones. */
  function findPatientPage({ query }: FastifyRequest): string {
    return buildPortalUrl({ patient: readLink(context, readParameters(query).get('link'))?.patientId })
  }

  /** A page of another site must not call services or launch apps. */
  function requireOwnPage(
    handle: (request: FastifyRequest, reply: FastifyReply, login: Login) => Promise<FastifyReply>,
    findPage?: (request: FastifyRequest) => string,
  ) {
    return requireClinician(
      context,
      async (request, reply, login) =>
        isOpenedByOtherSite(request, settings.issuerUrl)
          ? reply.sendProblem({ kind: 'cross-site' })
          : handle(request, reply, login),
      findPage,
    )
  }

  /** Slow services must not use up the connections of this process. */
  async function callWithinLimit(
    request: FastifyRequest,
    login: Login,
    subject: HookSubject,
  ): Promise<readonly ServiceCards[]> {
    if (running >= LIMITS.cdsCalls)
      return settings.cds.services.map(service => ({ service, cards: undefined }))
    running++
    try {
      return await callServices(context, { request, login }, subject)
    } finally {
      running--
    }
  }
}

/** The encounter that the portal preselects: the only one in progress. */
async function findOnlyEncounter(read: FhirReader, patientId: string): Promise<string | undefined> {
  const found = await read(`Encounter?patient=${patientId}&status=in-progress&_count=2`)
  const encounters = found.kind === 'found' ? listResources(found.resource, 'Encounter') : []
  return encounters.length === 1 ? encounters[0]?.id : undefined
}

interface LaunchLink extends HookSubject {
  readonly clientId: string
  readonly appContext: string | undefined
  readonly service: string
}

const PURPOSE = 'cds-link'

/**
 * A link of a card is encrypted, because its context may describe the patient. It holds for the login that got the card, for
 * five minutes.
 */
async function createLinkBuilder(
  { store, sealer, clock }: AuthContext,
  login: Login,
  subject: HookSubject,
  results: readonly ServiceCards[],
): Promise<BuildLaunchLink> {
  const links = results.flatMap(({ service, cards = [] }) =>
    cards.flatMap(card => card.links.map(link => [link, service.id] as const)),
  )
  const services = new Map<CardLink, string>(links)
  const urls = [...new Set(links.map(([link]) => link.url))]
  const clients = urls.length === 0 ? [] : await findLaunchTargets(store, urls)
  return link => {
    const clientId = clients.find(({ launch_url }) => launch_url === link.url)?.client_id
    if (clientId === undefined) return undefined
    const content = {
      ...subject,
      clientId,
      appContext: link.appContext,
      service: services.get(link),
      login: login.idHash,
      until: clock() + LIFETIME.cdsLink,
    }
    const sealed = sealer.seal(JSON.stringify(content), PURPOSE)
    return `${paths.cardsLaunch}?${new URLSearchParams({ link: sealed })}`
  }
}

/** Apps that an administrator approved, by their launch URLs. */
function findLaunchTargets({ db }: AuthContext['store'], urls: readonly string[]) {
  return db
    .selectFrom('client')
    .select(['client_id', 'launch_url'])
    .where('launch_url', 'in', urls)
    .where('approved', '=', true)
    .orderBy('client_id')
    .execute()
}

function openLink(context: AuthContext, login: Login, sealed?: string): LaunchLink | undefined {
  const link = readLink(context, sealed)
  return link?.login === login.idHash && link.until > context.clock() ? link : undefined
}

function readLink({ sealer }: AuthContext, sealed = '') {
  const text = sealer.tryOpen(sealed, PURPOSE)
  const link: unknown = text === undefined ? undefined : JSON.parse(text)
  if (!isRecord(link)) return undefined
  const { patientId, encounterId, clientId, appContext, service, login, until } = link
  if (typeof patientId !== 'string' || typeof clientId !== 'string' || typeof service !== 'string')
    return undefined
  return {
    patientId,
    clientId,
    service,
    encounterId: typeof encounterId === 'string' ? encounterId : undefined,
    appContext: typeof appContext === 'string' ? appContext : undefined,
    login,
    until: Number(until),
  }
}
