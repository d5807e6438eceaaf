import type { FastifyInstance } from 'fastify'
import { Type } from 'typebox'
import { type Api, createOpenApi, type JsonSchema } from '../../endpoint/index.ts'
import { type Html, html, renderPageHead, renderTable } from '../../web/ui/index.ts'
import { renderAppPage } from '../page.ts'
import type { SessionEndpoint } from './endpoint.ts'
import { endpoints } from './endpoints.ts'

const ErrorBody = Type.Object({
  resourceType: Type.Literal('OperationOutcome'),
  issue: Type.Array(
    Type.Object({
      severity: Type.Literal('error'),
      code: Type.String(),
      details: Type.Object({ text: Type.String() }),
    }),
    { minItems: 1 },
  ),
})

const NO_SCOPE_NEEDED = 'No scope is needed.'

/** Errors that every endpoint may return, and errors of some endpoints only (API-11). */
const ERRORS = {
  400: 'A parameter is unknown or has an invalid value (`invalid`).',
  401: 'There is no session, the session has ended, or the FHIR server no longer accepts it (`login`).',
  403: 'A required scope was not granted (`forbidden`, naming it), or the FHIR server refuses.',
  404: 'The FHIR server has no such record (`not-found`).',
  409: 'Several sessions are open in the browser and X-Session-Id names none, or it names a session of another browser (`conflict`).',
  502: 'The FHIR server or the auth server is unreachable, or its response is invalid (`transient`).',
  504: 'The FHIR server or the auth server did not respond in time (`transient`).',
} as const

export function defineSessionApi(appUrl: string, cookieName: string): Api<SessionEndpoint> {
  return {
    title: 'Sallyport session API',
    description:
      'Data of the patient of a SMART launch. The session holds the bearer token: callers send the session cookie and no Authorization header.',
    url: appUrl,
    prefix: '/api',
    endpoints,
    security: [{ session: [] }],
    securitySchemes: {
      session: {
        type: 'apiKey',
        in: 'cookie',
        name: cookieName,
        description: 'Set by a SMART launch at /launch and /callback. HttpOnly. Each session has its own.',
      },
    },
    parameters: {
      SessionId: {
        name: 'X-Session-Id',
        in: 'header',
        required: false,
        schema: { type: 'string' },
        description:
          'The `sessionId` of the page, from its URL `/s/<sessionId>`. Required if several sessions are open in the browser.',
      },
    },
    error: { name: 'OperationOutcome', schema: ErrorBody, texts: ERRORS },
    describe: ({ path, description, scopes }) => ({
      operationId: path.slice(1),
      description: `${description} ${scopes.length > 0 ? `Required scopes: \`${scopes.join(' ')}\`.` : NO_SCOPE_NEEDED}`,
      members: { 'x-required-scopes': scopes },
      example: path === EXAMPLE.path ? EXAMPLE.response : undefined,
    }),
  }
}

export function createOpenApiDocument(appUrl: string, cookieName: string) {
  return createOpenApi(defineSessionApi(appUrl, cookieName))
}

/** `/docs` is generated from the same endpoints as the routes and the OpenAPI document. */
export function addDocsRoute(app: FastifyInstance): void {
  const document = renderAppPage(
    { title: 'Session API', width: 'mid' },
    html`${renderPageHead('Session API', 'Data of the launched patient, for the pages of an app. The session holds the bearer token: requests send the session cookie and no Authorization header.')}
<div class="stack">
${renderOverview()}
${renderExample()}
${endpoints.map(renderEndpoint)}
${renderErrors()}
</div>`,
  )
  app.get('/docs', (_request, reply) => reply.sendPage(document))
}

function renderOverview(): Html {
  return html`<section class="card card--clip" aria-labelledby="h-all"><div class="card__head"><h2 id="h-all">Endpoints</h2><p class="small"><a href="/api/openapi.json">OpenAPI 3.1 document</a></p></div>
${renderTable(
  {
    caption: 'Endpoints of the session API',
    kind: 'table--stack',
    columns: ['Endpoint', 'Returns', 'Required scopes'],
  },
  endpoints.map(({ path, title, scopes }) => [
    html`<a href="#${toAnchor(path)}">GET /api${path}</a>`,
    title,
    renderScopes(scopes),
  ]),
)}</section>`
}

/** A request of a page of the app, and its response. */
const EXAMPLE = {
  path: '/session',
  request: `const response = await fetch('/api/session', {
  headers: { 'X-Session-Id': location.pathname.split('/')[2] },
})
const session = await response.json()`,
  response: {
    sessionId: 'Yw2b0q7mT3xK',
    patientId: 'patient-1',
    encounterId: 'encounter-1',
    needPatientBanner: true,
    fhirBaseUrl: 'http://localhost:8080/fhir',
    scopes: ['launch', 'openid', 'fhirUser', 'patient/Patient.rs', 'patient/Condition.rs'],
    expiresAt: '2026-11-13T14:30:00.000Z',
    secondsRemaining: 1800,
  },
} as const

function renderExample(): Html {
  return html`<section class="card" aria-labelledby="h-example"><div class="card__head"><h2 id="h-example">Example</h2><p class="small muted">In a page at /s/&lt;sessionId&gt;; the browser adds the cookie</p></div>
<div class="card__body stack"><h3>Request</h3><pre class="card card__body"><code>${EXAMPLE.request}</code></pre>
<h3>Response</h3><pre class="card card__body"><code>${JSON.stringify(EXAMPLE.response, undefined, 2)}</code></pre></div></section>`
}

function renderEndpoint({ path, description, scopes, query, result }: SessionEndpoint): Html {
  return html`<section class="card card--clip" id="${toAnchor(path)}" aria-labelledby="h-${toAnchor(path)}"><div class="card__head"><h2 id="h-${toAnchor(path)}">GET /api${path}</h2></div>
<div class="card__body"><p>${renderText(description)}</p><p class="small muted">Required scopes: ${renderScopes(scopes)}</p></div>
${renderFields('Parameters', query, 'Default')}
${renderFields('Response fields', result, 'Required')}
</section>`
}

function renderFields(title: string, schema: JsonSchema, last: 'Default' | 'Required'): Html | undefined {
  const fields = Object.entries(schema.properties ?? {})
  if (fields.length === 0) return undefined
  const required = new Set(schema.required)
  return renderTable(
    { caption: title, kind: 'table--stack', columns: [title, 'Type', last] },
    fields.map(([name, field]) => [
      html`<code>${name}</code>${field.description !== undefined && html`<span class="sub">${renderText(field.description)}</span>`}`,
      formatType(field),
      last === 'Default' ? String(field.default ?? 'None') : required.has(name) ? 'Yes' : 'No',
    ]),
  )
}

function renderErrors(): Html {
  return html`<section class="card card--clip" aria-labelledby="h-errors"><div class="card__head"><h2 id="h-errors">Errors</h2><p class="small muted">An OperationOutcome as JSON</p></div>
${renderTable(
  { caption: 'Errors', kind: 'table--stack', columns: ['Status', 'Means'] },
  Object.entries(ERRORS).map(([status, text]) => [status, renderText(text)]),
)}</section>`
}

/** Descriptions are Markdown in the OpenAPI document. They use only code spans. */
function renderText(markdown: string): Html {
  return html`${markdown.split('`').map((part, at) => (at % 2 === 0 ? part : html`<code>${part}</code>`))}`
}

function renderScopes(scopes: readonly string[]): Html {
  if (scopes.length === 0) return html`none`
  return html`${scopes.map((scope, at) => html`${at > 0 && ' '}<code>${scope}</code>`)}`
}

function formatType({
  type,
  const: only,
  anyOf,
  items = {},
  minimum,
  maximum,
  properties,
}: JsonSchema): string {
  if (only !== undefined) return `"${only}"`
  if (anyOf) return `one of ${anyOf.map(choice => choice.const).join(', ')}`
  if (type === 'array') return `array of ${formatType(items)}`
  if (type === 'integer' && maximum !== undefined) return `integer, ${minimum} to ${maximum}`
  const resource = properties?.resourceType ?? properties?.resource?.properties?.resourceType
  return typeof resource?.const === 'string' ? resource.const : String(type)
}

function toAnchor(path: string): string {
  return path.slice(1)
}
