import { badge, dateText, errorPage, type Html, html, mark, page, timeText } from '../../web/index.ts'
import type { AppContext, AppSettings } from '../context.ts'
import { type Failure, toResponse } from '../failure.ts'
import { getPortalUrl, isSampleData } from '../portal-url.ts'

/** A page of the demo app without a record, and its status. */
export interface StatePage {
  readonly status: number
  readonly page: Html
}

export interface Occasion {
  readonly context: AppContext
  /** The request id. */
  readonly reference: string
  /** The FHIR server of the session, where there is one. */
  readonly fhirBaseUrl?: string
}

/** The page for a failure that leaves nothing to show. */
export function failurePage(occasion: Occasion, failure: Failure): StatePage {
  switch (failure.kind) {
    case 'no-session':
      return { status: 200, page: renderWelcomePage(occasion.context.settings) }
    case 'session-over':
    case 'token-refused':
    case 'another-session':
      return sessionOverPage(occasion)
    case 'access-refused':
    case 'not-found':
    case 'missing-scope':
    case 'bad-parameter':
      return refusedPage(occasion, failure)
    case 'away':
    case 'slow':
    case 'unexpected-answer':
      return awayPage(occasion, failure)
  }
}

function sessionOverPage({ context, reference }: Occasion): StatePage {
  return {
    status: 401,
    page: errorPage({
      kind: 'refused',
      title: 'Your session is over',
      text: [
        'It reached its end, you signed out, or the access of this app was removed. The record is closed, and nothing that you did was lost.',
        html`To go on, <b>launch the app again</b> from the patient list.`,
      ],
      code: 'session_over',
      reference,
      now: context.clock(),
      actions: [{ href: getPortalUrl(context.settings), text: 'Go to patients' }],
      bar: { kind: 'app' },
      site: 'Demo app',
      sampleData: isSampleData(context.settings),
    }),
  }
}

function refusedPage({ context, reference }: Occasion, failure: Failure): StatePage {
  const { status, body } = toResponse(failure)
  return {
    status,
    page: errorPage({
      kind: 'refused',
      title: 'This record cannot be shown',
      text: [
        'The FHIR server does not give this session the record of the patient who was launched.',
        html`<b>No record was opened.</b> Launch the app again from the patient list.`,
      ],
      code: String(status),
      reason: body.issue[0]?.details.text ?? '',
      reference,
      now: context.clock(),
      actions: [{ href: getPortalUrl(context.settings), text: 'Go to patients' }],
      bar: { kind: 'app' },
      site: 'Demo app',
      sampleData: isSampleData(context.settings),
    }),
  }
}

/** The record cannot be shown, and the session goes on (design: error-away). */
function awayPage({ context, reference, fhirBaseUrl = '' }: Occasion, failure: Failure): StatePage {
  const { status, body } = toResponse(failure)
  return {
    status,
    page: errorPage({
      kind: 'away',
      title: 'Patient records cannot be reached',
      text: [
        `${sinceText(context, failure, fhirBaseUrl)} Your session goes on, and nothing that you did was lost.`,
        'If this is urgent, use your usual downtime procedure. Do not rely on a page you opened earlier.',
      ],
      code: String(status),
      reason: body.issue[0]?.details.text ?? '',
      reference,
      now: context.clock(),
      actions: [{ href: '/', text: 'Try again' }],
      more: servers(context, failure, fhirBaseUrl),
      bar: { kind: 'app' },
      site: 'Demo app',
      sampleData: isSampleData(context.settings),
    }),
  }
}

function sinceText({ awaySince, clock }: AppContext, failure: Failure, fhirBaseUrl: string): string {
  const since = awaySince.get(fhirBaseUrl)
  if (!isOfFhirServer(failure) || since === undefined) return 'The sign-in server does not answer.'
  const today = dateText(since) === dateText(clock())
  return `The FHIR server has not answered since ${today ? '' : `${dateText(since)} `}${timeText(since)}.`
}

function isOfFhirServer(failure: Failure): boolean {
  return !('server' in failure) || failure.server === 'FHIR server'
}

/** Only what this request has learnt: which one did not answer, and that this one does. */
function servers({ settings, timeoutMs }: AppContext, failure: Failure, fhirBaseUrl: string): Html {
  const state = badge(
    failure.kind === 'slow' ? `No answer in ${Math.ceil(timeoutMs / 1000)} s` : 'No answer',
    'bad',
  )
  const [name, address] = isOfFhirServer(failure)
    ? ['FHIR server', fhirBaseUrl]
    : ['Sign-in server', settings.issuerUrl]
  return html`<ul class="servers" aria-label="Servers"><li><span>${name}</span><span><code>${address}</code></span>${state}</li><li><span>App server</span><span><code>${settings.appUrl}</code></span>${badge('Answering', 'ok')}</li></ul>`
}

/** The app without a launch, by bookmark or typed: nothing went wrong, nothing is open. */
function renderWelcomePage(settings: AppSettings): Html {
  return page(
    {
      title: 'No patient is open',
      site: 'Demo app',
      bar: { kind: 'app' },
      width: 'flow',
      sampleData: isSampleData(settings),
    },
    html`<div class="stop">${mark('stop__art')}<div class="stop__body"><h1>No patient is open</h1>
<p>This app shows one patient: the one that you pick when you launch it.</p>
<p>Choose a patient here, or launch the app from the patient list.</p>
<div class="actions"><a class="btn" href="/launch">Choose a patient</a><a class="btn btn--quiet" href="${getPortalUrl(settings)}">Go to patients</a><a class="btn btn--quiet" href="/docs">Session API</a></div>
</div></div>`,
  )
}
