import type { FastifyRequest } from 'fastify'
import { stripQuery } from '../../web/http/index.ts'
import { formatLength, type Html, html, renderActions, renderBadge, renderSince } from '../../web/ui/index.ts'
import { type Audience, describeWayOn } from '../audience.ts'
import { type AppSettings, linkReference, linkStart } from '../context.ts'
import { type SessionFailure, toResponse } from '../failure.ts'
import type { AppContext } from '../oauth/context.ts'
import { renderAppErrorPage, renderCalmPage } from '../page.ts'
import type { SessionEnd } from '../session.ts'
import type { Visitor } from '../sessions/session-store.ts'

export interface StatePage {
  readonly status: number
  readonly page: Html
}

export interface Occasion extends Visitor {
  readonly context: AppContext
  readonly request: FastifyRequest
  readonly fhirBaseUrl?: string
}

/** The page of a session that cannot be shown. */
export function renderFailurePage(occasion: Occasion, failure: SessionFailure): StatePage {
  switch (failure.reason) {
    case 'session-ended':
    case 'token-refused':
      return { status: 401, page: renderEndedPage(occasion.context, occasion) }
    case 'no-session':
    case 'another-session':
    case 'several-sessions':
      return {
        status: toResponse(failure).status,
        page: renderElsewherePage(occasion.context, occasion.audience),
      }
    case 'access-refused':
    case 'record-not-found':
    case 'scope-not-granted':
    case 'parameter-not-usable':
      return renderRefusedPage(occasion, failure)
    default:
      return renderUnreachablePage(occasion, failure)
  }
}

/** A session ends every day: the page is no error page. */
export function renderEndedPage(
  { settings }: AppContext,
  { audience, end, idleSeconds = settings.app.sessionIdleSeconds }: Visitor,
): Html {
  return renderCalmPage(
    { title: 'Your session has ended', scripts: ['session.js'] },
    html`<p>${describeEnd(settings, end, idleSeconds)} The record is closed, and you lost no work.</p>
${renderWaysOn(settings, audience)}`,
  )
}

function describeEnd({ app }: AppSettings, end: SessionEnd | undefined, idleSeconds: number): string {
  switch (end) {
    case 'idle':
      return `You did not use it for ${formatLength(idleSeconds)}.`
    case 'maximum':
      return `A session lasts ${formatLength(app.sessionMaxSeconds)} at most.`
    case 'logout':
      return 'It was ended in this browser.'
    case 'access':
      return 'The app no longer has access: the sign-in has ended, or the access was removed.'
    case undefined:
      return 'It is no longer open.'
  }
}

/** For a restored tab whose browser has lost its cookies, or a URL that was copied to another browser. */
function renderElsewherePage({ settings }: AppContext, audience: Audience): Html {
  return renderCalmPage(
    { title: 'This session is not open in this browser' },
    html`<p>It has ended, or another browser opened it. A session opens only in the browser in which it began, until that browser is closed.</p>
${renderWaysOn(settings, audience)}`,
  )
}

function renderWaysOn(settings: AppSettings, audience: Audience): Html {
  const { text, actions } = describeWayOn(settings, audience)
  return html`<p>To continue, ${text}.</p>
${renderActions(...actions, { href: '/', text: 'Open sessions' })}`
}

function renderRefusedPage({ context, request, audience }: Occasion, failure: SessionFailure): StatePage {
  const { status, body } = toResponse(failure)
  const { text, actions } = describeWayOn(context.settings, audience)
  return {
    status,
    page: renderAppErrorPage(context, request, {
      kind: 'refused',
      title: 'This record cannot be shown',
      text: [
        failure.reason === 'record-not-found'
          ? 'The FHIR server no longer has this record.'
          : 'The FHIR server refuses this session access to this record.',
        html`<b>No record was opened.</b> To try again, ${text}.`,
      ],
      code: String(status),
      reason: body.issue[0]?.details.text,
      referenceUrl: linkReference(context.settings, request.id),
      actions,
    }),
  }
}

function renderUnreachablePage(
  { context, request, audience, fhirBaseUrl = '' }: Occasion,
  failure: SessionFailure,
): StatePage {
  const { status, body } = toResponse(failure)
  return {
    status,
    page: renderAppErrorPage(context, request, {
      kind: 'unavailable',
      title: 'Patient records cannot be reached',
      text: [
        html`${describeOutage(context, failure, fhirBaseUrl)} Your session continues, and you lost no work.`,
        audience === 'self' || audience === 'relative'
          ? 'Try again later. If this is urgent, call your hospital or practice.'
          : 'If this is urgent, use your usual downtime procedure. Do not rely on a page you opened earlier.',
      ],
      code: String(status),
      reason: body.issue[0]?.details.text,
      actions: [{ href: stripQuery(request.url), text: 'Try again' }],
      more: renderServers(context, failure, fhirBaseUrl),
    }),
  }
}

function describeOutage(
  { unreachableSince: awaySince, clock }: AppContext,
  failure: SessionFailure,
  fhirBaseUrl: string,
): Html {
  const since = awaySince.get(fhirBaseUrl)
  if (!isOfFhirServer(failure) || since === undefined) return html`The sign-in server does not respond.`
  return html`The FHIR server has not responded since ${renderSince(since, clock())}.`
}

function isOfFhirServer(failure: SessionFailure): boolean {
  return failure.reason !== 'auth-server-unreachable' && failure.reason !== 'auth-server-slow'
}

/** Lists only the server that failed in this request, and this app. */
function renderServers(
  { settings, timeoutMs }: AppContext,
  failure: SessionFailure,
  fhirBaseUrl: string,
): Html {
  const state = renderBadge(
    failure.reason === 'records-slow' || failure.reason === 'auth-server-slow'
      ? `No response in ${Math.ceil(timeoutMs / 1000)} s`
      : 'No response',
    'bad',
  )
  const [name, address] = isOfFhirServer(failure)
    ? ['FHIR server', fhirBaseUrl]
    : ['Sign-in server', settings.issuerUrl]
  return html`<ul class="servers" aria-label="Servers"><li><span>${name}</span><span><code>${address}</code></span>${state}</li><li><span>App server</span><span><code>${settings.appUrl}</code></span>${renderBadge('Available', 'ok')}</li></ul>`
}

export function renderWelcomePage(settings: AppSettings): Html {
  return renderCalmPage(
    { title: 'No record is open' },
    html`<p>This app shows one record in each session: the one that you choose when you open it.</p>
<p>Choose a record here. Clinicians can also launch the app from the patient list.</p>
${renderActions({ href: '/launch', text: 'Choose a record' }, linkStart(settings, 'Go to the start page'), {
  href: '/docs',
  text: 'Session API',
})}`,
  )
}

/** Replaces the name of a patient that could not be read. */
export function nameFailure({ reason }: SessionFailure): string {
  if (reason === 'scope-not-granted') return 'Name not shared with this app'
  return reason === 'record-not-found' ? 'Patient not found' : 'Name could not be loaded'
}
