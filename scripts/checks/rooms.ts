import { posix } from 'node:path'

/** Source files by their path from the root (`src/auth/server.ts`). */
export type Sources = ReadonlyMap<string, string>

interface Room {
  /** Rooms whose door it may open. */
  readonly opens: readonly string[]
  /** Rooms of which it may name types only. */
  readonly namesTypesOf?: readonly string[]
}

const WORDS = ['scope', 'fhir', 'consent']
const GROUND = [...WORDS, 'web', 'store', 'config', 'audit']
const PARTS = ['interceptor', 'gateway', 'fhir-server', 'auth', 'session']

/** Imports go one way: cli, then parts, then common ground, then words. Parts meet over HTTP only; two have one door. */
const ROOMS: Readonly<Record<string, Room>> = {
  scope: { opens: [] },
  fhir: { opens: ['scope'] },
  consent: { opens: ['scope', 'fhir'] },
  web: { opens: ['fhir', 'store'] },
  store: { opens: [] },
  config: { opens: ['scope', 'store'] },
  audit: { opens: [...WORDS, 'store'] },
  door: { opens: [...WORDS, 'web', 'audit'] },
  // A library that other FHIR servers mount: it brings no server and no database.
  interceptor: { opens: WORDS },
  gateway: { opens: [...GROUND, 'door'], namesTypesOf: ['interceptor'] },
  'fhir-server': { opens: [...GROUND, 'door'] },
  auth: { opens: GROUND },
  session: { opens: GROUND },
  cli: { opens: [...GROUND, ...PARTS] },
}

const LONGEST_FILE = 320

/** Hands the environment to config. */
const HANDS_OVER = 'src/cli/main.ts'

interface Import {
  readonly path: string
  readonly typeOnly: boolean
}

const IMPORT = /^\s*(?:import|export)\s+(type\s+)?(?:[^'";]*?\sfrom\s+)?'([^']+)'/gm
const DYNAMIC_IMPORT = /\bimport\('([^']+)'\)/g

function importsOf(text: string): readonly Import[] {
  const code = text.replace(/\/\*[\s\S]*?\*\//g, '')
  return [
    ...[...code.matchAll(IMPORT)].map(([, type, path = '']) => ({ path, typeOnly: type !== undefined })),
    ...[...code.matchAll(DYNAMIC_IMPORT)].map(([, path = '']) => ({ path, typeOnly: false })),
  ]
}

function roomOf(file: string): string | undefined {
  const [top, room] = file.split('/')
  return top === 'src' ? room : undefined
}

function isTest(file: string): boolean {
  return file.endsWith('.test.ts') || file.includes('/testing/')
}

/** What is wrong with the rooms; nothing when they are in order. */
export function roomFaults(sources: Sources): readonly string[] {
  return [...sources]
    .filter(([file]) => roomOf(file) !== undefined)
    .flatMap(([file, text]) => [
      ...doorFaults(file, text),
      ...importsOf(text).flatMap(found => importFaults(file, found)),
      ...wordFaults(file, text),
    ])
}

function doorFaults(file: string, text: string): readonly string[] {
  const room = roomOf(file)
  const lines = text.split('\n').length - 1
  return [
    ...(room !== undefined && !(room in ROOMS) ? [`${file}: ${room} is not a room`] : []),
    ...(file === `src/${room}/index.ts` && !text.startsWith('/**')
      ? [`${file}: the door has no paragraph that says what the room does`]
      : []),
    ...(lines > LONGEST_FILE && !isTest(file) && hasCode(text)
      ? [`${file}: ${lines} lines are too many for one idea`]
      : []),
  ]
}

/** A table may be as long as what it lists. */
function hasCode(text: string): boolean {
  return /\bfunction\b|=>/.test(text)
}

function importFaults(file: string, { path, typeOnly }: Import): readonly string[] {
  if (!path.startsWith('.')) return []
  const target = posix.join(posix.dirname(file), path)
  const [from, to] = [roomOf(file), roomOf(target)]
  if (from === to) return []
  if (to === undefined) return isTest(file) ? [] : [`${file}: imports ${target}, which is no source`]
  // A suite that one room's tests share with another's, to be held to the same.
  if (isTest(file) && isTest(target)) return []
  if (!isDoor(target, from, to)) return [`${file}: enters ${to} by ${target}, not by its index.ts`]
  return isTest(file) || mayImport(from, to, typeOnly) ? [] : [`${file}: ${from} may not import ${to}`]
}

/** The room's `index.ts`; for cli, which opens what it needs when it needs it, also that of a folder in the room. */
function isDoor(target: string, from: string | undefined, to: string): boolean {
  return target === `src/${to}/index.ts` || (from === 'cli' && /^src\/[^/]+\/[^/]+\/index\.ts$/.test(target))
}

function mayImport(from: string | undefined, to: string, typeOnly: boolean): boolean {
  const room = ROOMS[from ?? '']
  return (
    room !== undefined && (room.opens.includes(to) || (typeOnly && (room.namesTypesOf ?? []).includes(to)))
  )
}

/** Who reads the environment and who prints. */
function wordFaults(file: string, text: string): readonly string[] {
  if (isTest(file)) return []
  const code = text.replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, '')
  const room = roomOf(file)
  return [
    ...(room !== 'config' && file !== HANDS_OVER && /\bprocess\.env\b/.test(code)
      ? [`${file}: only config reads process.env`]
      : []),
    ...(room !== 'cli' && /\bconsole\.|\bprocess\.(stdout|stderr|exit)\b/.test(code)
      ? [`${file}: only cli prints and exits`]
      : []),
  ]
}
