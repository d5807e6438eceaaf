import { createHash } from 'node:crypto'
import type { FastifyInstance } from 'fastify'

/** How an organization appears on pages. */
export interface Brand {
  readonly name: string
  /** Whom users ask for help. */
  readonly support?: string | undefined
  readonly logo?: BrandFile | undefined
  /** Replaces the colours of the style sheet. */
  readonly style?: BrandFile | undefined
}

interface BrandFile {
  /** It changes with the content, so that browsers may cache it for ever. */
  readonly url: string
  readonly type: string
  readonly content: Buffer
}

/** Of a server without an organization. */
export const OWN_BRAND: Brand = { name: 'Sallyport' }

/** The colours of a theme that follow from the colour of the organization. */
export interface Shades {
  readonly accent: string
  readonly accentHover: string
  readonly onAccent: string
  readonly accentSoft: string
}

export interface Palette {
  readonly light: Shades
  readonly dark: Shades
}

export function createBrand(options: {
  readonly name: string
  readonly support: string | undefined
  readonly logo: { readonly type: 'image/png' | 'image/svg+xml'; readonly content: Buffer } | undefined
  readonly palette: Palette | undefined
}): Brand {
  const { name, support, logo, palette } = options
  return {
    name,
    support,
    logo: logo && createFile(logo.type === 'image/png' ? 'png' : 'svg', logo),
    style: palette && createFile('css', { type: 'text/css; charset=utf-8', content: writeStyle(palette) }),
  }
}

function createFile(
  ending: string,
  { type, content }: { readonly type: string; readonly content: Buffer },
): BrandFile {
  const hash = createHash('sha256').update(content).digest('hex').slice(0, 16)
  return { url: `/brand/${hash}.${ending}`, type, content }
}

function writeStyle({ light, dark }: Palette): Buffer {
  return Buffer.from(`:root {
${writeShades(light)}
  --leaf-light: ${dark.accent};
}

@media (prefers-color-scheme: dark) {
  :root {
${writeShades(dark)}
  }
}

@media print {
  :root {
    --accent: #000;
  }
}
`)
}

function writeShades({ accent, accentHover, onAccent, accentSoft }: Shades): string {
  return `  --accent: ${accent};
  --accent-hover: ${accentHover};
  --on-accent: ${onAccent};
  --accent-soft: ${accentSoft};`
}

/** An SVG of the operator that somebody opens by itself can neither run scripts nor load anything. */
const FILE_POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox"

/** Serves the files of the organization. */
export function serveBrand(app: FastifyInstance, { logo, style }: Brand): void {
  const files = [logo, style].filter(file => file !== undefined)
  app.get<{ Params: { name: string } }>('/brand/:name', ({ params }, reply) => {
    const file = files.find(({ url }) => url === `/brand/${params.name}`)
    if (!file) return reply.callNotFound()
    return reply
      .type(file.type)
      .header('content-security-policy', FILE_POLICY)
      .header('cache-control', 'public, max-age=31536000, immutable')
      .send(file.content)
  })
}
