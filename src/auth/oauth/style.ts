import { createHash } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import type { Settings } from '../../config/index.ts'
import { remember } from '../../core/index.ts'

/** SMART 2.2, styling: the light theme of our own pages. */
const STYLE = {
  color_background: '#f5f6f8',
  color_error: '#b3261e',
  color_highlight: '#3942b8',
  color_modal_backdrop: '#131b2e',
  color_success: '#1a6b41',
  color_text: '#131b2e',
  dim_border_radius: '6px',
  dim_font_size: '16px',
  dim_spacing_size: '16px',
  font_family_body:
    '-apple-system, BlinkMacSystemFont, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans", system-ui, sans-serif',
  font_family_heading:
    '-apple-system, BlinkMacSystemFont, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans", system-ui, sans-serif',
} as const

interface Style {
  /** SMART 2.2: it changes with the content, so that apps may cache it. */
  readonly path: string
  readonly json: string
}

const styles = new Map<string, Style>()

/** Apps get the colour of the organization. */
export function getStyle({ brand }: Pick<Settings, 'brand'>): Style {
  return remember(styles, brand.colour ?? STYLE.color_highlight, highlight => {
    const json = JSON.stringify({ ...STYLE, color_highlight: highlight }, undefined, 2)
    const hash = createHash('sha256').update(json).digest('hex').slice(0, 16)
    return { path: `/smart-style/${hash}.json`, json }
  })
}

/** Serves `smart_style_url`, which is public. */
export function addStyleRoutes(app: FastifyInstance, settings: Settings): void {
  const { path, json } = getStyle(settings)
  app.get(path, (_request, reply) =>
    reply
      .type('application/json; charset=utf-8')
      .header('cache-control', 'public, max-age=31536000, immutable')
      .header('access-control-allow-origin', '*')
      .send(json),
  )
}
