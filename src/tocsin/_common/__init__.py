"""What every room uses: errors, checks, words for numbers, seeds."""
