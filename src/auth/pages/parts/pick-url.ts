import { paths } from '../../base/paths.ts'

export function buildPickUrl(
  pendingId: string,
  more: Readonly<Partial<Record<'search' | 'page' | 'patient' | 'encounters', string | undefined>>> = {},
): string {
  const query = new URLSearchParams({ interaction: pendingId })
  for (const [name, value] of Object.entries(more)) if (value !== undefined) query.set(name, value)
  return `${paths.pick}?${query}`
}
