import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { isRecord } from '../../src/core/index.ts'
import { type Html, html } from '../../src/web/ui/html.ts'

const FOLDER = resolve(import.meta.dirname, '../../vectors')

interface VectorFile {
  readonly name: string
  readonly description: string
  readonly vectors: readonly Vector[]
}

interface VectorPage {
  readonly path: string
  readonly title: string
  readonly content: Html
}

interface Request {
  readonly method: string
  readonly url: string
}

type Vector = Readonly<Record<string, unknown>> & { readonly id: string; readonly why?: string }

export function readVectorFiles(): readonly VectorFile[] {
  return readdirSync(FOLDER)
    .filter(name => name.endsWith('.json'))
    .map(name => {
      const { description, vectors, tokens, flows } = JSON.parse(readFileSync(join(FOLDER, name), 'utf8'))
      return { name, description, vectors: vectors ?? tokens ?? flows }
    })
}

/** One page for each file of decision vectors, one row for each vector. */
export function formatVectorPages(): readonly VectorPage[] {
  return readVectorFiles().map(({ name, description, vectors }) => {
    const title = `Decision vectors: ${name.replace('.json', '')}`
    return {
      path: `vectors/${name.replace('.json', '.html')}`,
      title,
      content: html`<h1>${title}</h1>
<p>${description} ${vectors.length} vectors of <code>vectors/${name}</code>. <a href="index.html">What the members mean</a></p>
${vectors.map(formatVector)}`,
    }
  })
}

function formatVector({ id, why, ...members }: Vector): Html {
  return html`<details class="vector" id="${id}"><summary><code>${id}</code> ${why}${formatRequest(members)}</summary>
<dl>${Object.entries(members).map(([name, value]) => html`<dt>${name}</dt><dd><code>${typeof value === 'string' ? value : JSON.stringify(value)}</code></dd>`)}</dl></details>`
}

/** The request and its expected status, where a vector has them. */
function formatRequest({ request, expected }: Omit<Vector, 'id'>): Html | false {
  if (!isRequest(request)) return false
  const status = isRecord(expected) && typeof expected.status === 'number' && `, ${expected.status}`
  return html` <code>${request.method} ${request.url}</code>${status}`
}

function isRequest(value: unknown): value is Request {
  return isRecord(value) && typeof value.method === 'string' && typeof value.url === 'string'
}
