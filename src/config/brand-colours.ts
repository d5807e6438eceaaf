import type { Palette, Shades } from '../web/ui/index.ts'

/** The colours of an organization: what the pages derive from them, and whether text in them is readable (WCAG 2.2, 1.4.3). */

/** Colours of the style sheet of a theme. Texts and links in the colour of the organization are on all of them. */
export const SURFACES = {
  light: ['#ffffff', '#f5f6f8', '#edeff3'],
  dark: ['#151c29', '#0d121c', '#1e2635'],
} as const

type Theme = keyof typeof SURFACES

const AA = 4.5
const WHITE = '#ffffff'
const BLACK = '#000000'
/** Lighter or darker colours of the same hue are tried in steps of one percent. */
const STEPS = 100
/** How much of the colour the surface of a chosen row has. */
const SOFT = { light: 0.08, dark: 0.18 } as const

interface BrandColours {
  readonly colour: string | undefined
  readonly darkColour: string | undefined
}

/** Undefined without a colour: the pages keep their own. */
export function makePalette({ colour, darkColour }: BrandColours): Palette | undefined {
  if (colour === undefined) return undefined
  return {
    light: {
      accent: colour,
      accentHover: mix(colour, BLACK, 0.25),
      onAccent: WHITE,
      accentSoft: getSoft(colour, 'light'),
    },
    dark: makeDark(darkColour ?? findReadable(colour, 'dark')),
  }
}

function makeDark(accent: string): Shades {
  return {
    accent,
    accentHover: mix(accent, WHITE, 0.35),
    onAccent: SURFACES.dark[1],
    accentSoft: getSoft(accent, 'dark'),
  }
}

/** Why text in these colours would be hard to read, with a colour that is not. */
export function findColourProblems({ colour, darkColour }: BrandColours): readonly string[] {
  return [
    ...findUnreadable('SMART_BRAND_COLOUR', colour, 'light'),
    ...findUnreadable('SMART_BRAND_DARK_COLOUR', darkColour, 'dark'),
  ]
}

function findUnreadable(variable: string, colour: string | undefined, theme: Theme): readonly string[] {
  if (colour === undefined) return []
  const { ratio, surface } = findWorst(colour, theme)
  if (ratio >= AA) return []
  return [
    `${variable}=${colour} has a contrast of ${formatRatio(ratio)} on ${surface} of the ${theme} theme, and WCAG AA needs ${AA}:1. ${findReadable(colour, theme)} has the same hue and enough contrast`,
  ]
}

/** Rounded down, so that a refused ratio never looks like an accepted one. */
function formatRatio(ratio: number): string {
  return `${(Math.floor(ratio * 100) / 100).toFixed(2)}:1`
}

/** The nearest darker (light theme) or lighter (dark theme) colour that is readable. Black and white are. */
function findReadable(colour: string, theme: Theme): string {
  const end = theme === 'light' ? BLACK : WHITE
  for (let step = 0; step < STEPS; step += 1) {
    const candidate = mix(colour, end, step / STEPS)
    if (findWorst(candidate, theme).ratio >= AA) return candidate
  }
  return end
}

function findWorst(colour: string, theme: Theme): { readonly ratio: number; readonly surface: string } {
  const measured = [...SURFACES[theme], getSoft(colour, theme)].map(surface => ({
    surface,
    ratio: computeContrast(colour, surface),
  }))
  return measured.reduce((worst, next) => (next.ratio < worst.ratio ? next : worst))
}

function getSoft(colour: string, theme: Theme): string {
  return mix(SURFACES[theme][0], colour, SOFT[theme])
}

function mix(from: string, to: string, part: number): string {
  const ends = readChannels(to)
  const mixed = readChannels(from).map((value, at) => Math.round(value + ((ends[at] ?? 0) - value) * part))
  return `#${mixed.map(value => value.toString(16).padStart(2, '0')).join('')}`
}

/** WCAG 2.2, contrast ratio. */
export function computeContrast(one: string, other: string): number {
  const [dark = 0, light = 0] = [computeLuminance(one), computeLuminance(other)].sort((a, b) => a - b)
  return (light + 0.05) / (dark + 0.05)
}

/** WCAG 2.2, relative luminance. */
function computeLuminance(colour: string): number {
  const [red = 0, green = 0, blue = 0] = readChannels(colour).map(value => {
    const part = value / 255
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4
  })
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}

function readChannels(colour: string): readonly number[] {
  return [1, 3, 5].map(at => Number.parseInt(colour.slice(at, at + 2), 16))
}
