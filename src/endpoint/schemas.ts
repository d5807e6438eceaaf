import { type TSchema, Type } from '@sinclair/typebox'

/** Unknown members are refused. */
export const CLOSED = { additionalProperties: false } as const

export const NONE = Type.Object({}, CLOSED)

export const Time = Type.String({ format: 'date-time' })

export function formatTime(at: number): string {
  return new Date(at).toISOString()
}

export function PageOf<Item extends TSchema>(item: Item) {
  return Type.Object(
    {
      items: Type.Array(item),
      next: Type.Optional(
        Type.String({ description: 'For `after` of the next page. Absent on the last page.' }),
      ),
    },
    CLOSED,
  )
}
