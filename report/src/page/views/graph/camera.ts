// The visible part of a drawing: moved by dragging and the wheel, zoomed by keys, the wheel and two fingers.

import type { RefObject } from "preact";
import { useCallback, useEffect, useRef, useState } from "preact/hooks";

export interface Camera {
  /** The position of the drawing's corner in the window, and its scale. */
  x: number;
  y: number;
  scale: number;
}

export interface Extent {
  width: number;
  height: number;
}

const SMALLEST = 0.05;
const LARGEST = 4;

/** Returns the camera that shows the whole drawing; small drawings are not enlarged. */
export function fitting(drawing: Extent, window: Extent): Camera {
  const scale = Math.max(
    SMALLEST,
    Math.min(1, window.width / Math.max(1, drawing.width), window.height / Math.max(1, drawing.height)),
  );
  return { scale, x: (window.width - drawing.width * scale) / 2, y: (window.height - drawing.height * scale) / 2 };
}

/** Returns the camera with another scale; a point of the window keeps its position. */
export function zoomed(camera: Camera, factor: number, x: number, y: number): Camera {
  const scale = Math.min(LARGEST, Math.max(SMALLEST, camera.scale * factor));
  const by = scale / camera.scale;
  return { scale, x: x - (x - camera.x) * by, y: y - (y - camera.y) * by };
}

/** Returns the camera, moved as little as possible to show a box. */
export function showing(
  camera: Camera,
  box: { x: number; y: number; width: number; height: number },
  window: Extent,
): Camera {
  const room = 16;
  const nudge = (middle: number, size: number, offset: number, length: number) => {
    const from = (middle - size / 2) * camera.scale + offset;
    const to = (middle + size / 2) * camera.scale + offset;
    if (from < room) return room - from;
    return to > length - room ? Math.max(length - room - to, room - from) : 0;
  };
  return {
    scale: camera.scale,
    x: camera.x + nudge(box.x, box.width, camera.x, window.width),
    y: camera.y + nudge(box.y, box.height, camera.y, window.height),
  };
}

export interface CameraControl {
  camera: Camera;
  setCamera(change: (before: Camera) => Camera): void;
  /** Zooms around the centre. */
  zoom(factor: number): void;
  /** Whether the last press moved the drawing, so that its end is no click. */
  hasMoved(): boolean;
  events: Record<string, (event: PointerEvent) => void>;
}

const WHEEL_LINE = 16;

/** Returns a camera for the drawing in an element. */
export function useCamera(element: RefObject<Element | null>): CameraControl {
  const [camera, setCamera] = useState<Camera>({ x: 0, y: 0, scale: 1 });
  const pointers = useRef(new Map<number, { x: number; y: number }>());
  const moved = useRef(0);

  useEffect(() => {
    const onWheel = (event: Event) => {
      const wheel = event as WheelEvent;
      wheel.preventDefault();
      const { left, top } = element.current!.getBoundingClientRect();
      const unit = wheel.deltaMode === 1 ? WHEEL_LINE : 1;
      const [across, down] = wheel.shiftKey ? [wheel.deltaY, wheel.deltaX] : [wheel.deltaX, wheel.deltaY];
      setCamera((before) =>
        wheel.ctrlKey || wheel.metaKey
          ? zoomed(before, 2 ** ((-wheel.deltaY * unit) / 240), wheel.clientX - left, wheel.clientY - top)
          : { ...before, x: before.x - across * unit, y: before.y - down * unit },
      );
    };
    const target = element.current!;
    // A listener of Preact could not prevent the page from zooming.
    target.addEventListener("wheel", onWheel, { passive: false });
    return () => target.removeEventListener("wheel", onWheel);
  }, []);

  const down = useCallback((event: PointerEvent) => {
    if (event.button !== 0) return;
    pointers.current.set(event.pointerId, { x: event.clientX, y: event.clientY });
    moved.current = 0;
  }, []);
  const move = useCallback((event: PointerEvent) => {
    const before = pointers.current.get(event.pointerId);
    if (!before) return;
    const [byX, byY] = [event.clientX - before.x, event.clientY - before.y];
    moved.current += Math.abs(byX) + Math.abs(byY);
    // Only when it becomes a drag: an element that captures a pointer gets its click.
    if (moved.current > 4) element.current!.setPointerCapture(event.pointerId);
    const other = [...pointers.current].find(([id]) => id !== event.pointerId)?.[1];
    pointers.current.set(event.pointerId, { x: event.clientX, y: event.clientY });
    if (!other) {
      setCamera((camera) => ({ ...camera, x: camera.x + byX, y: camera.y + byY }));
      return;
    }
    const { left, top } = element.current!.getBoundingClientRect();
    const apart = (at: { x: number; y: number }) => Math.max(1, Math.hypot(at.x - other.x, at.y - other.y));
    const factor = apart({ x: event.clientX, y: event.clientY }) / apart(before);
    const [x, y] = [(event.clientX + other.x) / 2 - left, (event.clientY + other.y) / 2 - top];
    setCamera((camera) => {
      const next = zoomed(camera, factor, x, y);
      return { ...next, x: next.x + byX / 2, y: next.y + byY / 2 };
    });
  }, []);
  const up = useCallback((event: PointerEvent) => {
    pointers.current.delete(event.pointerId);
  }, []);

  return {
    camera,
    setCamera,
    zoom: (factor) => {
      const { width, height } = element.current!.getBoundingClientRect();
      setCamera((before) => zoomed(before, factor, width / 2, height / 2));
    },
    hasMoved: () => moved.current > 4,
    events: { onPointerDown: down, onPointerMove: move, onPointerUp: up, onPointerCancel: up },
  };
}
