import type { FastifyRequest } from 'fastify'
import {
  type ErrorPageOptions,
  type Html,
  html,
  type PageOptions,
  renderErrorPage,
  renderMark,
  renderPage,
} from '../web/ui/index.ts'

const SITE = 'Demo app'
const BAR = { kind: 'app' } as const

/** A page of the demo app. */
export function renderAppPage(options: Partial<PageOptions> & Pick<PageOptions, 'title'>, body: Html): Html {
  return renderPage({ site: SITE, bar: BAR, ...options }, body)
}

/** A page that says where the user stands, and is no error page. */
export function renderCalmPage(
  options: {
    readonly title: string
    /** If it is not the title. */
    readonly heading?: string
    readonly id?: string
    readonly scripts?: readonly string[]
  },
  content: Html,
): Html {
  const { title, heading = title, id, scripts = [] } = options
  return renderAppPage(
    { title, scripts, width: 'flow' },
    html`<div class="stop"${id !== undefined && html` id="${id}"`}>${renderMark('stop__art')}<div class="stop__body"><h1>${heading}</h1>
${content}
</div></div>`,
  )
}

export function renderAppErrorPage(
  { clock }: { readonly clock: () => number },
  { id }: FastifyRequest,
  options: Omit<ErrorPageOptions, 'reference' | 'now'>,
): Html {
  const common = { bar: BAR, site: SITE }
  return renderErrorPage({ ...common, reference: id, now: clock(), ...options })
}
